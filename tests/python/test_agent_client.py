"""Conversations of several turns with the official agent SDK, and what a program may change while they last."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from agent_stage import Stage, answers, call, calls, last_texts, plain, result, results, system, text, words
from claude_agent_sdk import (
    AssistantMessage,
    CLIConnectionError,
    ConversationResetMessage,
    PermissionResultAllow,
    ResultMessage,
    create_sdk_mcp_server,
    tool,
)

SLEEP = {"command": "sleep 60; touch never"}


async def turn(client, prompt: str = "Go.") -> list:
    await client.query(prompt)
    return [message async for message in client.receive_response()]


def run(program):
    return asyncio.run(asyncio.wait_for(program, 50))


def test_turns_share_a_session(stage):
    async def program(here: Stage):
        async with here.client() as client:
            return [await turn(client, prompt) for prompt in ("one", "two", "three")]

    here = stage(text("1"), text("2"), text("3"))
    turns = run(program(here))
    assert [result(each).result for each in turns] == ["1", "2", "3"]
    assert len({result(each).session_id for each in turns}) == 1
    assert [len(system(each, "init")) for each in turns] == [1, 1, 1]
    spoken = [message["role"] for message in here.bodies()[2]["messages"]]
    assert spoken == ["user", "assistant", "user", "assistant", "user"]
    costs = [result(each).total_cost_usd for each in turns]
    assert costs == sorted(costs) and costs[0] < costs[2]


def test_an_interrupt_ends_a_turn_and_the_next_one_works(stage):
    async def program(here: Stage):
        async with here.client(allowed_tools=["Bash"]) as client:
            await client.query("Go.")
            first, began = [], None
            async for message in client.receive_response():
                first.append(message)
                if isinstance(message, AssistantMessage):
                    began = time.monotonic()
                    await client.interrupt()
            return first, time.monotonic() - began, await turn(client, "And now?")

    here = stage(call("Bash", SLEEP), text("Better."))
    first, took, second = run(program(here))
    assert result(first).subtype == "error_during_execution" and took < 4
    assert results(first)[0].is_error
    assert result(second).result == "Better."
    spoken = json.dumps(here.bodies()[1]["messages"])
    # The call runs while its message may still be on its way: which of the two was interrupted is a matter of moments.
    assert calls(first)[0].id in spoken and "[Request interrupted by user" in spoken


def test_a_conversation_is_cleared(stage):
    async def program(here: Stage):
        async with here.client() as client:
            return [await turn(client, prompt) for prompt in ("The word is turnip.", "/clear", "What was it?")]

    here = stage(text("Good."), text("I cannot know."))
    before, cleared, after = run(program(here))
    assert result(cleared).num_turns == 0 and not result(cleared).is_error
    assert result(before).session_id != result(cleared).session_id == result(after).session_id
    assert system(cleared, "init")[0]["session_id"] == result(after).session_id
    assert "turnip" not in json.dumps(here.bodies()[1]["messages"])
    # Whoever adds up keeps the sums of before: those of the new conversation begin anew.
    (reset,) = [message for message in cleared if isinstance(message, ConversationResetMessage)]
    assert reset.session_id == result(before).session_id
    costs = [result(messages).total_cost_usd for messages in (before, cleared, after)]
    assert costs[0] > 0 and costs[1] == 0 and costs[2] > 0
    (used,) = result(after).model_usage.values()
    assert used["outputTokens"] == result(after).usage["output_tokens"] and result(cleared).model_usage == {}


def test_an_interrupt_while_the_model_speaks(stage):
    async def program(here: Stage):
        async with here.client(include_partial_messages=True) as client:
            await client.query("Go.")
            messages = []
            async for message in client.receive_response():
                messages.append(message)
                if type(message).__name__ == "StreamEvent" and message.event["type"] == "content_block_delta":
                    await client.interrupt()
            return messages, await turn(client, "Go on.")

    pause = {"reply": [{"text": "one two three four", "fragments": 4, "after": {1: {"pause_ms": 20000}}}]}
    here = stage(pause, text("Five."))
    messages, after = run(program(here))
    end = result(messages)
    assert (end.subtype, end.terminal_reason) == ("error_during_execution", "aborted_streaming")
    # What was read until then is told as a message, and the model knows it when it is asked again.
    (begun,) = words(messages)
    assert "one two three four".startswith(begun) and 0 < len(begun) < len("one two three four")
    assert result(after).result == "Five."
    spoken = here.bodies()[1]["messages"]
    assert [block["text"] for message in spoken if message["role"] == "assistant" for block in message["content"]] == [begun]
    assert "[Request interrupted by user]" in json.dumps(spoken[-1])


def test_an_interrupt_while_a_permission_is_asked_for(stage):
    cancelled = []

    async def decide(name, given, context):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(name)
            raise
        return PermissionResultAllow()

    async def program(here: Stage):
        async with here.client(can_use_tool=decide) as client:
            await client.query("Go.")
            messages = []
            async for message in client.receive_response():
                messages.append(message)
                if isinstance(message, AssistantMessage):
                    await asyncio.sleep(0.3)
                    await client.interrupt()
            return messages

    here = stage(call("Bash", {"command": "touch made"}), text("never"))
    end = result(run(program(here)))
    assert end.subtype == "error_during_execution" and not (here.work / "made").exists()
    assert cancelled == ["Bash"] and len(here.bodies()) == 1


def test_the_mode_changes_between_turns(stage):
    async def program(here: Stage):
        async with here.client() as client:
            first = await turn(client)
            await client.set_permission_mode("acceptEdits")
            return first, await turn(client)

    write = {"file_path": "a.txt", "content": "hi"}
    here = stage(call("Write", write), text("No."), call("Write", write), text("Yes."))
    first, second = run(program(here))
    assert results(first)[0].is_error and not results(second)[0].is_error
    assert system(second, "init")[0]["permissionMode"] == "acceptEdits"
    assert [answers(body)[0].get("is_error", False) for body in here.bodies()[1::2]] == [True, False]


def test_the_model_changes_between_turns(stage):
    async def program(here: Stage):
        async with here.client(model="claude-sonnet-5-5") as client:
            await turn(client)
            await client.set_model("claude-opus-5-5")
            await turn(client)
            await client.set_model(None)
            return await turn(client)

    here = stage(text("1"), text("2"), text("3"))
    assert result(run(program(here))).result == "3"
    assert [body["model"] for body in here.bodies()] == ["claude-sonnet-5-5", "claude-opus-5-5", "claude-sonnet-5-5"]


def test_what_the_client_is_told_at_the_start(stage):
    async def program(here: Stage):
        async with here.client() as client:
            return await client.get_server_info()

    here = stage()
    info = run(program(here))
    assert here.bodies() == [], "nobody was asked for that"
    assert info["output_style"] == "default" and any(model["value"] == "default" for model in info["models"])
    assert info["account"]["apiKeySource"] == "ANTHROPIC_API_KEY"


def test_servers_are_listed_put_aside_and_met_again(stage):
    @tool("add", "Adds.", {"a": int})
    async def add(given):
        return {"content": [{"type": "text", "text": "1"}]}

    async def program(here: Stage):
        options = {"mcp_servers": {"calc": create_sdk_mcp_server("calc", version="2.0", tools=[add])}}
        async with here.client(**options) as client:
            await turn(client)
            first = await client.get_mcp_status()
            await client.toggle_mcp_server("calc", enabled=False)
            second = await client.get_mcp_status()
            await client.toggle_mcp_server("calc", enabled=True)
            await client.reconnect_mcp_server("calc")
            return first, second, await client.get_mcp_status()

    here = stage(text("Hi."))
    first, second, third = run(program(here))
    assert "mcp__calc__add" in [tool["name"] for tool in here.bodies()[0]["tools"]]
    server = first["mcpServers"][0]
    assert (server["status"], server["tools"][0]["name"]) == ("connected", "add")
    assert server["serverInfo"]["version"] == "2.0"
    assert [each["mcpServers"][0]["status"] for each in (second, third)] == ["disabled", "connected"]


def test_how_full_the_context_is(stage):
    async def program(here: Stage):
        async with here.client(model="claude-sonnet-4-5") as client:
            await turn(client)
            return await client.get_context_usage()

    here = stage(text("Hi."))
    usage = run(program(here))
    assert len(here.bodies()) == 1 and here.bodies()[0]["model"] == usage["model"]
    assert 0 < usage["totalTokens"] < usage["maxTokens"]
    names = [category["name"] for category in usage["categories"]]
    assert "Messages" in names and usage["model"] == "claude-sonnet-4-5"
    rows = usage["gridRows"]
    assert [len(row) for row in rows] == [10] * 10
    squares = [square for row in rows for square in row]
    assert {square["categoryName"] for square in squares} >= {"System tools", "Free space"}
    assert not squares[-1]["isFilled"] and squares[0]["isFilled"] and 0 < squares[0]["squareFullness"] <= 1


def test_files_go_back_to_what_they_were(stage):
    async def program(here: Stage):
        options = {
            "enable_file_checkpointing": True,
            "permission_mode": "acceptEdits",
            "extra_args": {"replay-user-messages": None},
        }
        async with here.client(**options) as client:
            messages = await turn(client, "Change it.")
            prompt = next(m.uuid for m in messages if type(m).__name__ == "UserMessage")
            after = (here.work / "a.txt").read_text()
            await client.rewind_files(prompt)
            return after

    here = stage(call("Write", {"file_path": "a.txt", "content": "new"}), text("Done."))
    assert run(program(here)) == "new"
    assert not (here.work / "a.txt").exists()
    assert not answers(here.bodies()[1])[0].get("is_error")


def test_a_task_in_the_background_is_stopped(stage):
    async def program(here: Stage):
        async with here.client(allowed_tools=["Bash"]) as client:
            messages = await turn(client)
            await client.stop_task(system(messages, "task_started")[0]["task_id"])
            return [message async for message in client.receive_response()]

    command = {"command": "sleep 60", "run_in_background": True}
    here = stage(call("Bash", command), text("Started."), text("Stopped."))
    told = run(program(here))
    assert system(told, "task_notification")[0]["status"] == "stopped"
    assert result(told).result == "Stopped."
    assert "stopped" in " ".join(last_texts(here.bodies()[2]))


def test_prompts_sent_together_are_all_answered(stage):
    async def program(here: Stage):
        async with here.client() as client:
            for prompt in ("one", "two", "three"):
                await client.query(prompt)
            answers = []
            async for message in client.receive_messages():
                if isinstance(message, ResultMessage):
                    answers.append(message.result)
                    if len(answers) == 2:
                        return answers

    here = stage({"reply": [{"pause_ms": 500}, {"text": "first"}]}, text("the others"))
    assert run(program(here)) == ["first", "the others"]
    assert "two\\nthree" in json.dumps(here.bodies()[1]["messages"][-1])


def test_many_slow_tools_and_a_slow_permission(stage):
    @tool("slow", "Slow.", {"n": int})
    async def slow(given):
        await asyncio.sleep(0.2)
        return {"content": [{"type": "text", "text": str(given["n"])}]}

    async def decide(name, given, context):
        await asyncio.sleep(0.5)
        return PermissionResultAllow()

    async def program(here: Stage):
        servers = {"x": create_sdk_mcp_server("x", tools=[slow])}
        async with here.client(mcp_servers=servers, can_use_tool=decide) as client:
            return await turn(client)

    here = stage({"reply": [{"tool": "mcp__x__slow", "input": {"n": n}} for n in range(20)]}, text("Done."))
    messages = run(program(here))
    assert [plain(each.content) for each in results(messages)] == [str(n) for n in range(20)]
    assert len(calls(messages)) == 20 and result(messages).num_turns == 21
    assert [answer["tool_use_id"] for answer in answers(here.bodies()[1])] == [each.id for each in calls(messages)]


def test_leaving_in_the_middle_leaves_nothing_running(stage):
    async def program(here: Stage):
        async with here.client(allowed_tools=["Bash"]) as client:
            await client.query("Go.")
            async for message in client.receive_response():
                if isinstance(message, AssistantMessage):
                    return

    here = stage(call("Bash", {"command": "echo $$ > pid; exec sleep 61"}), text("never"))
    began = time.monotonic()
    run(program(here))
    assert time.monotonic() - began < 20
    pid = (here.work / "pid").read_text().strip() if (here.work / "pid").exists() else None
    assert pid is None or not alive(int(pid))
    assert len(here.bodies()) == 1


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_connection_is_made_and_ended_by_hand(stage):
    async def program(here: Stage):
        client = here.client()
        await client.connect("One.")
        first = [message async for message in client.receive_response()]
        await client.disconnect()
        with pytest.raises(CLIConnectionError):
            await client.query("Two.")
        return first

    here = stage(text("Hi."))
    assert result(run(program(here))).result == "Hi."
    assert [last_texts(body)[-1] for body in here.bodies()] == ["One."]


def test_an_interrupt_ends_an_agent_that_nobody_else_could_stop(stage):
    async def program(here: Stage):
        async with here.client(allowed_tools=["Agent"]) as client:
            first = await turn(client)
            await client.interrupt()
            await client.query("And now?")
            second = [message async for message in client.receive_response()]
            return first, second

    order = {"description": "dig", "prompt": "Dig.", "subagent_type": "general-purpose", "run_in_background": True}
    here = stage(
        {"reply": [{"pause_ms": 40000}, {"text": "Gold."}], "when": {"last_user_text": "Dig."}},
        call("Agent", order),
        text("It digs."),
        text("I see."),
    )
    first, second = run(program(here))
    assert result(first).result == "It digs." and result(second).result == "I see."
    assert [ended["status"] for ended in system(second, "task_notification")] == ["stopped"]
    assert "has ended: stopped" in json.dumps(here.bodies()[-1]["messages"][-1])


def test_a_rewind_takes_back_what_commands_did_too(stage):
    async def program(here: Stage):
        options = {
            "enable_file_checkpointing": True,
            "allowed_tools": ["Bash"],
            "extra_args": {"replay-user-messages": None},
        }
        async with here.client(**options) as client:
            first = await turn(client, "Once.")
            second = await turn(client, "Twice.")
            prompts = [next(m.uuid for m in each if type(m).__name__ == "UserMessage") for each in (first, second)]
            states = []
            for prompt in reversed(prompts):
                await client.rewind_files(prompt)
                states.append({name: (here.work / name).read_text() for name in ("kept", "made") if (here.work / name).exists()})
            with pytest.raises(Exception, match="No file checkpoint found"):
                await client.rewind_files("11111111-2222-4333-8444-555555555555")
            return states

    write = "echo {0} > made; echo {0} >> kept"
    here = stage(
        call("Bash", {"command": write.format("one")}), text("1"), call("Bash", {"command": write.format("two")}), text("2")
    )
    (here.work / "kept").write_text("mine\n")
    after_one, before = run(program(here))
    assert after_one == {"kept": "mine\none\n", "made": "one\n"}
    assert before == {"kept": "mine\n"}
    assert [answers(body)[0].get("is_error", False) for body in here.bodies()[1::2]] == [False, False]


def test_a_prompt_that_cannot_wait_makes_no_error_of_what_ran(stage):
    async def program(here: Stage):
        async def urgent():
            yield {
                "type": "user",
                "priority": "now",
                "message": {"role": "user", "content": "This first."},
                "parent_tool_use_id": None,
                "session_id": "default",
            }

        async with here.client(allowed_tools=["Bash"]) as client:
            await client.query("Go.")
            ended = []
            async for message in client.receive_messages():
                if isinstance(message, AssistantMessage) and not ended:
                    await client.query(urgent())
                if isinstance(message, ResultMessage):
                    ended.append((message.subtype, message.is_error, message.result))
                    if len(ended) == 2:
                        return ended

    here = stage(call("Bash", {"command": "sleep 60"}), text("At once."))
    assert run(program(here)) == [("success", False, ""), ("success", False, "At once.")]
    assert "This first." in json.dumps(here.bodies()[1]["messages"][-1])


def test_a_model_that_nobody_knows_here_is_asked_for(stage):
    async def program(here: Stage):
        async with here.client() as client:
            await client.set_model("of-a-gateway")
            return await turn(client, "Go.")

    here = stage(text("Yes."), strict={"off": ["known-model"]})
    assert result(run(program(here))).result == "Yes."
    assert here.bodies()[0]["model"] == "of-a-gateway"
