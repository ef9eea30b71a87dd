"""Programs that take part while the agent works: permissions, hooks and tools of their own, through the official SDK."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from agent_stage import Stage, answers, call, plain, result, results, system, text
from claude_agent_sdk import (
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    PermissionUpdate,
    ResultError,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)

from claude_agent_sdk.types import PermissionRuleValue

ONE_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TOUCH = {"command": "touch made"}


async def go(prompt: str = "Go."):
    yield {"type": "user", "message": {"role": "user", "content": prompt}, "parent_tool_use_id": None}


def ask(stage: Stage, **options: object) -> list:
    return asyncio.run(stage.query(go(), **options))


def ask_in_vain(stage: Stage, **options: object) -> list:
    """The same where the last result is an error, which the SDK raises after it was delivered."""
    messages = []

    async def run():
        async for message in query(prompt=go(), options=stage.options(**options)):
            messages.append(message)

    with pytest.raises(ResultError):
        asyncio.run(run())
    return messages


def hook(answer: dict | None = None, seen: list | None = None, wait: float = 0):
    async def called(given, tool_use_id, context):
        if seen is not None:
            seen.append(given)
        await asyncio.sleep(wait)
        return answer or {}

    return called


def on(event: str, *hooks, **terms):
    return {event: [HookMatcher(hooks=list(hooks), **terms)]}


def specific(event: str, **more: object) -> dict:
    return {"hookSpecificOutput": {"hookEventName": event, **more}}


# Permissions


def test_a_permission_is_asked_for_and_given(stage):
    seen = []

    async def decide(name, given, context):
        seen.append((name, given, context))
        return PermissionResultAllow()

    here = stage(call("Bash", TOUCH), text("Done."))
    end = result(ask(here, can_use_tool=decide))
    assert (here.work / "made").exists() and end.permission_denials == []
    name, given, context = seen[0]
    assert context.tool_use_id == answers(here.bodies()[1])[0]["tool_use_id"]
    assert (name, given) == ("Bash", TOUCH)
    assert context.tool_use_id and context.decision_reason and context.title and context.display_name == "Bash"
    assert context.suggestions[0].rules[0].tool_name == "Bash"


def test_a_permission_with_another_input(stage):
    async def decide(name, given, context):
        return PermissionResultAllow(updated_input={"command": "touch other"})

    here = stage(call("Bash", TOUCH), text("Done."))
    assert result(ask(here, can_use_tool=decide)).result == "Done."
    assert (here.work / "other").exists() and not (here.work / "made").exists()
    assert not answers(here.bodies()[1])[0].get("is_error")


def test_a_refusal_is_read_by_the_model(stage):
    async def decide(name, given, context):
        return PermissionResultDeny(message="Not today.")

    here = stage(call("Bash", TOUCH), text("Then not."))
    messages = ask(here, can_use_tool=decide)
    assert results(messages)[0].content == "Not today." and results(messages)[0].is_error
    assert result(messages).permission_denials[0]["tool_input"] == TOUCH
    assert "Not today." in json.dumps(here.bodies()[1]["messages"][-1])


def test_a_refusal_that_ends_the_run(stage):
    async def decide(name, given, context):
        return PermissionResultDeny(message="Stop.", interrupt=True)

    here = stage(call("Bash", TOUCH), text("never"))
    end = result(ask_in_vain(here, can_use_tool=decide))
    assert (end.subtype, end.terminal_reason) == ("error_during_execution", "aborted_tools")
    assert len(here.bodies()) == 1


def test_a_broken_callback_is_a_refusal(stage):
    async def decide(name, given, context):
        raise RuntimeError("the callback broke")

    here = stage(call("Bash", TOUCH), text("Then not."))
    messages = ask(here, can_use_tool=decide)
    assert "the callback broke" in plain(results(messages)[0].content)
    assert not (here.work / "made").exists()
    assert "the callback broke" in json.dumps(answers(here.bodies()[1]))


def test_rules_that_come_with_a_permission(stage):
    asked = []

    async def decide(name, given, context):
        asked.append(given["command"])
        rule = PermissionRuleValue(tool_name="Bash", rule_content="touch:*")
        update = PermissionUpdate(type="addRules", rules=[rule], behavior="allow", destination="session")
        return PermissionResultAllow(updated_permissions=[update])

    here = stage(call("Bash", {"command": "touch a"}), call("Bash", {"command": "touch b"}), text("Done."))
    messages = ask(here, can_use_tool=decide)
    assert asked == ["touch a"] and (here.work / "b").exists()
    assert [each.is_error for each in results(messages)] == [False, False]
    assert len(here.bodies()) == 3


def test_rules_that_are_kept_for_later_sessions(stage):
    async def decide(name, given, context):
        rule = PermissionRuleValue(tool_name="Bash", rule_content="touch:*")
        update = PermissionUpdate(type="addRules", rules=[rule], behavior="allow", destination="localSettings")
        return PermissionResultAllow(updated_permissions=[update])

    here = stage(call("Bash", {"command": "touch a"}), text("Done."), call("Bash", {"command": "touch b"}), text("Done."))
    assert result(ask(here, can_use_tool=decide)).result == "Done."
    kept = json.loads((here.work / ".claude" / "settings.local.json").read_text())
    assert kept["permissions"]["allow"] == ["Bash(touch:*)"]
    ask(here, setting_sources=["local"])
    assert (here.work / "b").exists() and not answers(here.bodies()[3])[0].get("is_error")


def test_a_mode_that_comes_with_a_permission(stage):
    asked = []

    async def decide(name, given, context):
        asked.append(name)
        return PermissionResultAllow(updated_permissions=context.suggestions)

    here = stage(
        call("Write", {"file_path": "a.txt", "content": "a"}), call("Write", {"file_path": "b.txt", "content": "b"}), text("Done.")
    )
    messages = ask(here, can_use_tool=decide)
    assert asked == ["Write"] and (here.work / "b.txt").exists()
    assert any(status.get("permissionMode") == "acceptEdits" for status in system(messages, "status"))
    assert [answers(body)[0].get("is_error", False) for body in here.bodies()[1:]] == [False, False]


def test_a_path_outside_is_named(stage, tmp_path):
    seen = []

    async def decide(name, given, context):
        seen.append(context.blocked_path)
        return PermissionResultAllow()

    (tmp_path / "a.txt").write_text("outside")
    here = stage(call("Read", {"file_path": str(tmp_path / "a.txt")}), text("Done."))
    messages = ask(here, can_use_tool=decide)
    assert seen == [str((tmp_path / "a.txt").resolve())] and "outside" in plain(results(messages)[0].content)
    assert "outside" in json.dumps(answers(here.bodies()[1]))


def test_several_permissions_are_asked_for_at_once(stage, tmp_path):
    waiting, most = [0], [0]

    async def decide(name, given, context):
        waiting[0] += 1
        most[0] = max(most[0], waiting[0])
        await asyncio.sleep(0.2)
        waiting[0] -= 1
        return PermissionResultAllow()

    files = [tmp_path / f"{n}.txt" for n in range(3)]
    for file in files:
        file.write_text(file.name)
    here = stage({"reply": [{"tool": "Read", "input": {"file_path": str(file)}} for file in files]}, text("Done."))
    messages = ask(here, can_use_tool=decide)
    assert most == [3]
    assert [file.name in plain(each.content) for file, each in zip(files, results(messages))] == [True] * 3
    assert [each["tool_use_id"] for each in answers(here.bodies()[1])] == [each.tool_use_id for each in results(messages)]


def test_questions_to_the_user_are_answered_through_the_permission(stage):
    options = [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]
    question = {"question": "Which?", "header": "Colour", "options": options, "multiSelect": False}

    async def decide(name, given, context):
        assert name == "AskUserQuestion"
        return PermissionResultAllow(updated_input={**given, "answers": {"Which?": "Blue"}})

    here = stage(call("AskUserQuestion", {"questions": [question]}), text("Blue it is."))
    messages = ask(here, can_use_tool=decide)
    assert "Blue" in plain(results(messages)[0].content)
    assert "AskUserQuestion" in [each["name"] for each in here.bodies()[0]["tools"]]
    assert "Blue" in json.dumps(answers(here.bodies()[1]))


def test_an_mcp_tool_that_decides(stage):
    seen = []

    @tool("decide", "Decides.", {"tool_name": str, "input": dict})
    async def decide(given):
        seen.append(given["tool_name"])
        return {"content": [{"type": "text", "text": json.dumps({"behavior": "allow", "updatedInput": given["input"]})}]}

    here = stage(call("Bash", TOUCH), text("Done."))
    messages = ask(
        here,
        mcp_servers={"guard": create_sdk_mcp_server("guard", tools=[decide])},
        permission_prompt_tool_name="mcp__guard__decide",
    )
    assert seen == ["Bash"] and (here.work / "made").exists() and results(messages)[0].is_error is False
    assert not answers(here.bodies()[1])[0].get("is_error")


# Hooks


def test_a_hook_before_a_tool_refuses_it(stage):
    answer = specific("PreToolUse", permissionDecision="deny", permissionDecisionReason="Not with me.")
    here = stage(call("Bash", TOUCH), text("Then not."))
    messages = ask(here, allowed_tools=["Bash"], hooks=on("PreToolUse", hook(answer), matcher="Bash"))
    assert plain(results(messages)[0].content) == "Not with me."
    assert result(messages).permission_denials[0]["tool_name"] == "Bash"
    assert plain(answers(here.bodies()[1])[0]["content"]) == "Not with me."


def test_a_hook_before_a_tool_allows_and_changes_it(stage):
    answer = specific("PreToolUse", permissionDecision="allow", updatedInput={"command": "touch other"})
    here = stage(call("Bash", TOUCH), text("Done."))
    messages = ask(here, hooks=on("PreToolUse", hook(answer)))
    assert (here.work / "other").exists() and results(messages)[0].is_error is False
    assert not answers(here.bodies()[1])[0].get("is_error")


def test_a_hook_that_wants_somebody_to_be_asked(stage):
    asked = []

    async def decide(name, given, context):
        asked.append(context.decision_reason)
        return PermissionResultAllow()

    answer = specific("PreToolUse", permissionDecision="ask", permissionDecisionReason="Better ask.")
    here = stage(call("Bash", TOUCH), text("Done."))
    end = result(ask(here, allowed_tools=["Bash"], can_use_tool=decide, hooks=on("PreToolUse", hook(answer))))
    assert len(asked) == 1 and "Better ask." in asked[0] and end.permission_denials == []
    assert not answers(here.bodies()[1])[0].get("is_error")


def test_a_hook_after_a_tool_adds_words(stage):
    seen = []
    answer = specific("PostToolUse", additionalContext="The file is new.")
    here = stage(call("Bash", TOUCH), text("Done."))
    messages = ask(here, allowed_tools=["Bash"], hooks=on("PostToolUse", hook(answer, seen)))
    assert results(messages)[0].tool_use_id == seen[0]["tool_use_id"]
    assert seen[0]["tool_response"]["interrupted"] is False and seen[0]["tool_use_id"]
    said = here.bodies()[1]["messages"][-1]["content"][-1]["text"]
    assert "The file is new." in said and "PostToolUse:Bash" in said and said.startswith("<system-reminder>")


def test_a_hook_after_a_tool_takes_something_out_of_what_it_brought(stage):
    here = stage(call("Read", {"file_path": "./keys.txt"}), call("mcp__calc__add", {"a": 1, "b": 2}), text("Done."))
    (here.work / "keys.txt").write_text("mine\nsk-12345\n")
    heard = []

    async def mask(data, tool_use_id, context):
        heard.append(data)
        response = data["tool_response"]
        if data["tool_name"] == "Read":
            file = {**response["file"], "content": response["file"]["content"].replace("sk-12345", "***")}
            return specific("PostToolUse", updatedToolOutput={**response, "file": file})
        return specific("PostToolUse", updatedMCPToolOutput=[{"type": "text", "text": "a number"}])

    servers = {"calc": create_sdk_mcp_server("calc", tools=[add])}
    hooks = on("PostToolUse", mask)
    messages = ask(here, hooks=hooks, mcp_servers=servers, allowed_tools=["mcp__calc"], effort="high")
    assert [plain(each.content) for each in results(messages)] == ["1\tmine\n2\t***", "a number"]
    bodies = here.bodies()
    assert [plain(answers(body)[0]["content"]) for body in bodies[1:]] == ["1\tmine\n2\t***", "a number"]
    assert "sk-12345" not in json.dumps(bodies)
    # Whoever guards files reads whole paths, and whoever counts prompts knows which it was.
    assert heard[0]["tool_input"]["file_path"] == str(here.work / "keys.txt")
    assert heard[0]["prompt_id"] == heard[1]["prompt_id"] and heard[0]["effort"] == {"level": "high"}


def test_what_does_not_look_like_a_result_takes_no_result_s_place(stage):
    here = stage(call("Glob", {"pattern": "*"}), text("Done."))
    (here.work / "found.txt").touch()

    odd = specific("PostToolUse", updatedToolOutput={"nothing": "of it"})
    messages = ask(here, hooks=on("PostToolUse", hook(odd)))
    assert "found.txt" in plain(answers(here.bodies()[1])[0]["content"])
    told = [each["content"] for each in system(messages, "informational")]
    assert any("does not have the shape" in content for content in told), told


def test_a_hook_names_the_session(stage):
    here = stage(text("Done."))

    ask(here, hooks=on("UserPromptSubmit", hook(specific("UserPromptSubmit", sessionTitle="About wheels"))))
    [record] = here.config.glob("projects/*/*.jsonl")
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    assert [line["customTitle"] for line in lines if line["type"] == "custom-title"] == ["About wheels"]
    assert len(here.bodies()) == 1


def test_one_model_plans_and_another_works(stage):
    here = stage(text("A plan."), text("Done."))

    async def talk() -> None:
        async with here.client(model="opusplan", permission_mode="plan") as client:
            for mode in ("plan", "default"):
                await client.set_permission_mode(mode)
                await client.query("Go.")
                async for _ in client.receive_response():
                    pass

    asyncio.run(talk())
    plans, works = [body["model"] for body in here.bodies()]
    assert "opus" in plans and "sonnet" in works


def test_a_hook_after_a_failure(stage):
    seen = []
    here = stage(call("Bash", {"command": "exit 3"}), text("Done."))
    messages = ask(here, allowed_tools=["Bash"], hooks=on("PostToolUseFailure", hook(None, seen)))
    assert seen[0]["tool_name"] == "Bash" and "3" in seen[0]["error"] and results(messages)[0].is_error
    assert "Exit code 3" in json.dumps(answers(here.bodies()[1]))


def test_a_hook_on_a_prompt_adds_words(stage):
    seen = []
    answer = specific("UserPromptSubmit", additionalContext="It is Monday.")
    here = stage(text("Hi."))
    assert result(ask(here, hooks=on("UserPromptSubmit", hook(answer, seen)))).result == "Hi."
    assert seen[0]["prompt"] == "Go." and seen[0]["session_id"] and seen[0]["cwd"] == str(here.work.resolve())
    assert "It is Monday." in json.dumps(here.bodies()[0]["messages"])


def test_a_hook_on_a_prompt_blocks_it(stage):
    here = stage()
    end = result(ask(here, hooks=on("UserPromptSubmit", hook({"decision": "block", "reason": "Not this."}))))
    assert (end.num_turns, end.is_error, here.bodies()) == (0, False, [])
    assert "Not this." in end.result


def test_a_stop_hook_lets_it_go_on(stage):
    seen = []

    async def stop(given, tool_use_id, context):
        seen.append(given["stop_hook_active"])
        return {} if given["stop_hook_active"] else {"decision": "block", "reason": "Also say please."}

    here = stage(text("Give me."), text("Please."))
    assert result(ask(here, hooks=on("Stop", stop))).result == "Please."
    assert seen == [False, True]
    assert "Stop hook feedback:\\nAlso say please." in json.dumps(here.bodies()[1]["messages"][-1])


def test_a_hook_ends_the_run(stage):
    here = stage(call("Bash", TOUCH), text("never"))
    answer = {"continue_": False, "stopReason": "Enough."}
    end = result(ask(here, allowed_tools=["Bash"], hooks=on("PostToolUse", hook(answer))))
    assert (end.terminal_reason, end.is_error, len(here.bodies())) == ("hook_stopped", False, 1)


def test_hooks_run_side_by_side(stage):
    here = stage(call("Glob", {"pattern": "*"}), text("Done."))
    began = time.monotonic()
    assert result(ask(here, hooks=on("PreToolUse", *[hook(wait=1) for _ in range(5)]))).result == "Done."
    assert time.monotonic() - began < 4.5
    assert len(answers(here.bodies()[1])) == 1


def test_a_hook_that_takes_too_long_is_no_permission(stage):
    here = stage(call("Bash", TOUCH), text("Done."))
    messages = ask(here, allowed_tools=["Bash"], hooks=on("PreToolUse", hook(wait=30), timeout=0.3))
    assert not (here.work / "made").exists() and results(messages)[0].is_error
    assert answers(here.bodies()[1])[0]["is_error"] is True


def test_a_hook_that_breaks_is_told_and_the_run_goes_on(stage):
    async def broken(given, tool_use_id, context):
        raise RuntimeError("broken hook")

    here = stage(call("Bash", TOUCH), text("Done."))
    messages = ask(here, allowed_tools=["Bash"], hooks=on("PreToolUse", broken))
    assert (here.work / "made").exists()
    assert any("broken hook" in told["content"] for told in system(messages, "informational"))
    assert "broken hook" not in json.dumps(here.bodies()[1]["messages"])


def test_a_hook_whose_failure_blocks(stage):
    async def broken(given, tool_use_id, context):
        raise RuntimeError("broken hook")

    here = stage(call("Bash", TOUCH), text("Done."))
    messages = ask(here, allowed_tools=["Bash"], hooks=on("PreToolUse", broken, on_failure="block"))
    assert not (here.work / "made").exists() and results(messages)[0].is_error
    assert answers(here.bodies()[1])[0]["is_error"] is True


def test_a_hook_that_answers_later(stage):
    here = stage(call("Bash", TOUCH), text("Done."))
    end = result(ask(here, allowed_tools=["Bash"], hooks=on("PostToolUse", hook({"async_": True}))))
    assert end.result == "Done." and (here.work / "made").exists()
    assert len(here.bodies()) == 2


def test_matchers_choose_tools(stage):
    seen = []
    here = stage(call("Glob", {"pattern": "*"}), call("Bash", TOUCH), text("Done."))
    messages = ask(here, allowed_tools=["Bash"], hooks=on("PreToolUse", hook(None, seen), matcher="Write|Bash"))
    assert [given["tool_name"] for given in seen] == ["Bash"]
    assert seen[0]["tool_use_id"] == results(messages)[1].tool_use_id == answers(here.bodies()[2])[0]["tool_use_id"]


def test_hooks_hear_of_agents(stage):
    started, stopped = [], []
    order = {"description": "say", "prompt": "Say it.", "subagent_type": "general-purpose"}
    here = stage(
        {"reply": [{"text": "Inner."}], "when": {"last_user_text": "Say it"}}, call("Agent", order), text("Done.")
    )
    submitted = []
    hooks = {
        **on("UserPromptSubmit", hook(None, submitted)),
        **on("SubagentStart", hook(None, started)),
        **on("SubagentStop", hook(None, stopped)),
    }
    messages = ask(here, allowed_tools=["Agent"], hooks=hooks)
    assert system(messages, "task_started")[0]["subagent_type"] == "general-purpose"
    assert "Inner." in json.dumps(answers(here.bodies()[-1]))
    assert started[0]["agent_type"] == stopped[0]["agent_type"] == "general-purpose"
    assert stopped[0]["last_assistant_message"] == "Inner."
    # What an agent does belongs to the prompt of the user.
    assert submitted[0]["prompt_id"] == started[0]["prompt_id"] == stopped[0]["prompt_id"]


def test_a_permission_request_hook_decides(stage):
    answer = specific("PermissionRequest", decision={"behavior": "allow"})
    here = stage(call("Bash", TOUCH), text("Done."))
    assert result(ask(here, hooks=on("PermissionRequest", hook(answer)))).permission_denials == []
    assert (here.work / "made").exists() and not answers(here.bodies()[1])[0].get("is_error")


# Tools of the program


@tool("add", "Adds two numbers.", {"a": float, "b": float})
async def add(given):
    return {"content": [{"type": "text", "text": str(given["a"] + given["b"])}]}


def test_a_tool_of_the_program(stage):
    here = stage(call("mcp__calc__add", {"a": 1, "b": 2}), text("Three."))
    server = create_sdk_mcp_server("calc", tools=[add])
    messages = ask(here, mcp_servers={"calc": server}, allowed_tools=["mcp__calc__add"])
    assert plain(results(messages)[0].content) == "3"
    offered = {each["name"]: each for each in here.bodies()[0]["tools"]}
    assert offered["mcp__calc__add"]["description"] == "Adds two numbers."
    assert set(offered["mcp__calc__add"]["input_schema"]["properties"]) == {"a", "b"}
    assert system(messages, "init")[0]["mcp_servers"] == [{"name": "calc", "status": "connected", "source": "sdk"}]


def test_a_tool_that_says_it_failed(stage):
    @tool("fail", "Fails.", {})
    async def fail(given):
        return {"content": [{"type": "text", "text": "no luck"}], "is_error": True}

    here = stage(call("mcp__x__fail", {}), text("Oh."))
    messages = ask(here, mcp_servers={"x": create_sdk_mcp_server("x", tools=[fail])}, allowed_tools=["mcp__x__fail"])
    assert results(messages)[0].is_error and "no luck" in plain(results(messages)[0].content)
    assert answers(here.bodies()[1])[0]["is_error"] is True


def test_a_tool_that_raises(stage):
    @tool("fail", "Fails.", {})
    async def fail(given):
        raise ValueError("exploded")

    here = stage(call("mcp__x__fail", {}), text("Oh."))
    messages = ask(here, mcp_servers={"x": create_sdk_mcp_server("x", tools=[fail])}, allowed_tools=["mcp__x__fail"])
    assert results(messages)[0].is_error and "exploded" in plain(results(messages)[0].content)
    assert "exploded" in json.dumps(answers(here.bodies()[1]))


def test_a_tool_that_brings_a_picture(stage):
    @tool("draw", "Draws.", {})
    async def draw(given):
        return {"content": [{"type": "image", "data": ONE_PIXEL, "mimeType": "image/png"}]}

    here = stage(call("mcp__x__draw", {}), text("Nice."))
    messages = ask(here, mcp_servers={"x": create_sdk_mcp_server("x", tools=[draw])}, allowed_tools=["mcp__x"])
    assert results(messages)[0].content[0]["type"] == "image"
    block = here.bodies()[1]["messages"][-1]["content"][0]
    assert block["content"][0]["type"] == "image"


def test_readers_among_the_tools_run_together(stage):
    from mcp.types import ToolAnnotations

    @tool("look", "Looks.", {"n": int}, annotations=ToolAnnotations(readOnlyHint=True))
    async def look(given):
        await asyncio.sleep(1)
        return {"content": [{"type": "text", "text": f"seen {given['n']}"}]}

    here = stage({"reply": [{"tool": "mcp__x__look", "input": {"n": n}} for n in range(8)]}, text("Done."))
    began = time.monotonic()
    messages = ask(here, mcp_servers={"x": create_sdk_mcp_server("x", tools=[look])}, allowed_tools=["mcp__x__look"])
    assert time.monotonic() - began < 6
    assert [plain(each.content) for each in results(messages)] == [f"seen {n}" for n in range(8)]
    assert [plain(each["content"]) for each in answers(here.bodies()[1])] == [f"seen {n}" for n in range(8)]


def test_two_servers_with_tools_of_one_name(stage):
    @tool("add", "Adds words.", {"a": str, "b": str})
    async def add_words(given):
        return {"content": [{"type": "text", "text": given["a"] + given["b"]}]}

    servers = {
        "numbers": create_sdk_mcp_server("numbers", tools=[add]),
        "words": create_sdk_mcp_server("words", tools=[add_words]),
    }
    here = stage(
        call("mcp__numbers__add", {"a": 1, "b": 2}), call("mcp__words__add", {"a": "1", "b": "2"}), text("Done.")
    )
    allowed = ["mcp__numbers__add", "mcp__words__add"]
    messages = ask(here, mcp_servers=servers, allowed_tools=allowed)
    assert [plain(each.content) for each in results(messages)] == ["3", "12"]
    assert set(allowed) <= {each["name"] for each in here.bodies()[0]["tools"]}


def test_tools_of_the_program_are_asked_about(stage):
    seen = []

    async def decide(name, given, context):
        seen.append(name)
        return PermissionResultAllow()

    here = stage(call("mcp__calc__add", {"a": 1, "b": 2}), text("Three."))
    messages = ask(here, mcp_servers={"calc": create_sdk_mcp_server("calc", tools=[add])}, can_use_tool=decide)
    assert seen == ["mcp__calc__add"] and plain(results(messages)[0].content) == "3"
    assert plain(answers(here.bodies()[1])[0]["content"]) == "3"


def test_a_hook_before_a_conversation_is_summed_up(stage):
    seen: list = []

    async def run(here: Stage) -> list:
        async with here.client(hooks=on("PreCompact", hook(None, seen))) as client:
            ends = []
            for prompt in ("One.", "Two.", "Three.", "/compact Keep the names."):
                await client.query(prompt)
                ends.append(result([message async for message in client.receive_response()]))
            return ends

    here = stage(*[text("Much. " * 400)] * 3, text("<summary>Ann and Bob.</summary>"))
    *_, compacted = asyncio.run(run(here))
    assert not compacted.is_error and compacted.num_turns == 0
    assert [(told["trigger"], told["custom_instructions"]) for told in seen] == [("manual", "Keep the names.")]
    assert "Keep the names." in json.dumps(here.bodies()[3]["messages"][-1])


def test_a_hook_hears_what_wants_attention(stage):
    seen: list = []

    async def allow(name, given, context):
        return PermissionResultAllow()

    here = stage(call("Bash", TOUCH), text("Done."))
    messages = ask(here, hooks=on("Notification", hook(None, seen)), can_use_tool=allow)
    assert result(messages).result == "Done." and (here.work / "made").exists()
    assert [told["notification_type"] for told in seen] == ["permission_prompt"] and "Bash" in seen[0]["message"]
    assert not answers(here.bodies()[1])[0].get("is_error")


def test_words_of_hooks_are_nobody_s_turn(stage):
    for event in ("PreToolUse", "PostToolUse", "Stop"):
        here = stage(call("Bash", TOUCH), {"reply": "Done.", "always": True})
        heard = []

        async def once(data, tool_use_id, context, event=event, heard=heard):
            heard.append(data)
            return specific(event, additionalContext="A word.") if len(heard) == 1 else {}

        messages = ask(here, allowed_tools=["Bash"], hooks={event: [HookMatcher(hooks=[once])]})
        assert result(messages).num_turns == 2, event
        assert len([message for message in messages if isinstance(message, UserMessage)]) == 1, event
        assert "A word." in json.dumps(here.bodies()[-1]["messages"]), event


def test_paths_are_asked_about_whole(stage):
    asked = []

    async def decide(tool_name, given, context):
        asked.append(given["file_path"])
        return PermissionResultAllow()

    here = stage(call("Write", {"file_path": "below/new.txt", "content": "x"}), text("Done."))
    assert result(ask(here, can_use_tool=decide)).result == "Done."
    assert asked == [str(here.work / "below/new.txt")] and (here.work / "below/new.txt").read_text() == "x"
    assert "below/new.txt" in json.dumps(here.bodies()[1]["messages"])
