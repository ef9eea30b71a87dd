"""One-shot queries with the official agent SDK: each option reaches the model, and what the model does comes back."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import pwd
import sys
import uuid
from pathlib import Path

import pytest
from agent_stage import Stage, answers, call, calls, last_texts, of, plain, result, results, system, text, words
from claude_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    CLIConnectionError,
    CLINotFoundError,
    HookEventMessage,
    ProcessError,
    RateLimitEvent,
    ResultError,
    ResultMessage,
    StreamEvent,
    TaskNotificationMessage,
    TaskStartedMessage,
    ThinkingBlock,
    UserMessage,
    query,
)

HOOK_SECONDS_MAX = 60
ONE_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def ask(stage: Stage, prompt: object = "Go.", **options: object) -> list:
    return asyncio.run(stage.query(prompt, **options))


def hi(stage: Stage, prompt: object = "Go.", **options: object) -> list:
    """The same where the model says no more than this."""
    messages = ask(stage, prompt, **options)
    assert words(messages) == ["Hi."] and result(messages).result == "Hi."
    return messages


def sent(*messages: dict):
    async def stream():
        for message in messages:
            yield message

    return stream()


def said(content: object, **more: object) -> dict:
    return {"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": None, **more}


def test_a_question_is_answered(stage):
    here = stage(text("Four."))
    messages = ask(here, "What is two and two?")
    assert words(messages) == ["Four."]
    end = result(messages)
    assert (end.subtype, end.is_error, end.result, end.num_turns) == ("success", False, "Four.", 1)
    assert end.total_cost_usd > 0 and end.usage["output_tokens"] > 0 and end.duration_ms >= 0
    assert list(end.model_usage) == [of(messages, AssistantMessage)[0].model]
    assert last_texts(here.bodies()[0])[-1] == "What is two and two?"
    assert here.stderr == []


def test_init_tells_what_there_is(stage):
    here = stage(text("Hi."))
    init = system(hi(here), "init")[0]
    # The tool that starts agents has another name for the model.
    offered = {tool["name"] for tool in here.bodies()[0]["tools"]}
    assert {"Bash", "Read", "Edit", "Agent"} <= offered and "Task" not in offered
    assert init["cwd"] == str(here.work.resolve())
    assert {"Bash", "Read", "Edit", "Task"} <= set(init["tools"])
    assert init["permissionMode"] == "default" and init["apiKeySource"] == "ANTHROPIC_API_KEY"
    version = tuple(int(part) for part in init["claude_code_version"].split("."))
    assert version >= (2, 1, 257)


def test_unset_system_prompt_is_empty(stage):
    here = stage(text("Hi."))
    hi(here)
    assert here.bodies()[0].get("system", []) == []


def test_system_prompt_as_text(stage):
    here = stage(text("Hi."))
    hi(here, system_prompt="You are a pirate.")
    assert [block["text"] for block in here.bodies()[0]["system"]] == ["You are a pirate."]


def test_system_prompt_preset_with_append(stage):
    here = stage(text("Hi."))
    hi(here, system_prompt={"type": "preset", "preset": "claude_code", "append": "Be brief."})
    blocks = [block["text"] for block in here.bodies()[0]["system"]]
    assert len(blocks) > 1 and blocks[-1] == "Be brief."


def test_system_prompt_from_a_file(stage):
    here = stage(text("Hi."))
    (here.work / "prompt.txt").write_text("From a file.")
    hi(here, system_prompt={"type": "file", "path": str(here.work / "prompt.txt")})
    assert "From a file." in json.dumps(here.bodies()[0]["system"])


def test_tools_are_chosen(stage):
    here = stage(text("Hi."))
    messages = ask(here, tools=["Read", "Glob"])
    assert sorted(tool["name"] for tool in here.bodies()[0]["tools"]) == ["Glob", "Read"]
    assert sorted(system(messages, "init")[0]["tools"]) == ["Glob", "Read"]


def test_no_tools_at_all(stage):
    here = stage(text("Hi."))
    assert system(hi(here, tools=[]), "init")[0]["tools"] == []
    assert here.bodies()[0].get("tools", []) == []


def test_the_preset_of_tools(stage):
    here = stage(text("Hi."))
    assert "Bash" in system(hi(here, tools={"type": "preset", "preset": "claude_code"}), "init")[0]["tools"]
    assert "Bash" in [tool["name"] for tool in here.bodies()[0]["tools"]]


def test_allowed_tools_run_unasked(stage):
    here = stage(call("Bash", {"command": "touch made"}), text("Done."))
    messages = ask(here, allowed_tools=["Bash(touch:*)"])
    assert (here.work / "made").exists()
    assert calls(messages)[0].name == "Bash" and results(messages)[0].is_error is False
    assert result(messages).num_turns == 2
    assert answers(here.bodies()[1])[0]["tool_use_id"] == calls(messages)[0].id


def test_without_anybody_to_ask_a_call_is_denied(stage):
    here = stage(call("Bash", {"command": "touch made"}), text("Then not."))
    end = result(ask(here))
    assert not (here.work / "made").exists()
    assert [denied["tool_name"] for denied in end.permission_denials] == ["Bash"]
    assert end.is_error is False
    assert answers(here.bodies()[1])[0]["is_error"] is True


def test_disallowed_tools_vanish(stage):
    here = stage(text("Hi."))
    assert not {"Bash", "Write"} & set(system(hi(here, disallowed_tools=["Bash", "Write"]), "init")[0]["tools"])
    names = [tool["name"] for tool in here.bodies()[0]["tools"]]
    assert "Bash" not in names and "Write" not in names and "Read" in names


def test_permission_mode_accept_edits(stage):
    here = stage(call("Write", {"file_path": "a.txt", "content": "hi"}), text("Done."))
    messages = ask(here, permission_mode="acceptEdits")
    assert (here.work / "a.txt").read_text() == "hi"
    assert system(messages, "init")[0]["permissionMode"] == "acceptEdits"
    assert not answers(here.bodies()[1])[0].get("is_error")


def test_max_turns_end_a_run(stage):
    here = stage(*[call("Glob", {"pattern": "*"})] * 3)
    messages = []

    async def run():
        async for message in query(prompt="Go.", options=here.options(max_turns=2)):
            messages.append(message)

    with pytest.raises(ResultError):
        asyncio.run(run())
    end = result(messages)
    assert (end.subtype, end.is_error, end.num_turns) == ("error_max_turns", True, 3)
    assert end.errors == ["Reached maximum number of turns (2)"]
    assert len(here.bodies()) == 2


def test_max_budget_ends_a_run(stage):
    here = stage(call("Glob", {"pattern": "*"}), text("never"))
    messages = []

    async def run():
        async for message in query(prompt="Go.", options=here.options(max_budget_usd=0.0001)):
            messages.append(message)

    with pytest.raises(ResultError):
        asyncio.run(run())
    assert result(messages).subtype == "error_max_budget_usd"
    assert len(here.bodies()) <= 1


def test_the_model_is_chosen(stage):
    here = stage(text("Hi."))
    messages = ask(here, model="claude-opus-5-5")
    assert here.bodies()[0]["model"] == "claude-opus-5-5"
    assert system(messages, "init")[0]["model"] == "claude-opus-5-5"


def test_a_fallback_takes_over(stage):
    here = stage({"status": 529, "times": 3, "when": {"model": "opus"}}, text("From the other."))
    env = {"CLAUDE_CODE_MAX_RETRIES": "3"}
    messages = ask(here, model="claude-opus-5-5", fallback_model="claude-sonnet-5-5", env=env)
    assert result(messages).result == "From the other."
    assert system(messages, "model_fallback")[0]["fallback_model"] == "claude-sonnet-5-5"
    assert system(messages, "api_retry")[0]["error_status"] == 529
    assert here.bodies()[-1]["model"] == "claude-sonnet-5-5"


def test_betas_go_into_a_header(stage):
    here = stage(text("Hi."), text("Hi."), text("Hi."))
    long = {"betas": ["context-1m-2025-08-07"]}
    chosen = [({"model": "claude-sonnet-4-5", **long}, 1_000_000), ({"model": "claude-haiku-4-5", **long}, 200_000)]
    chosen.append(({"model": "claude-sonnet-4-5[1m]"}, 1_000_000))
    for options, window in chosen:
        used = result(hi(here, **options)).model_usage
        assert [model["contextWindow"] for model in used.values()] == [window], options
    for request in here.requests():
        assert "context-1m-2025-08-07" in request["headers"]["anthropic-beta"]


def test_thinking_with_a_budget(stage):
    here = stage({"reply": [{"thinking": "Hm."}, {"text": "Hi."}]})
    messages = ask(here, model="claude-sonnet-4-5", max_thinking_tokens=2048)
    assert here.bodies()[0]["thinking"]["budget_tokens"] == 2048
    assert any(isinstance(block, ThinkingBlock) for each in of(messages, AssistantMessage) for block in each.content)


def test_thinking_is_switched_off(stage):
    here = stage(text("Hi."))
    hi(here, model="claude-sonnet-4-5", thinking={"type": "disabled"})
    assert here.bodies()[0].get("thinking", {"type": "disabled"})["type"] == "disabled"


def test_thinking_as_the_model_likes(stage):
    here = stage(text("Hi."))
    hi(here, thinking={"type": "adaptive", "display": "summarized"})
    assert here.bodies()[0]["thinking"]["type"] == "adaptive"
    assert here.bodies()[0]["thinking"]["display"] == "summarized"


def test_effort(stage):
    here = stage(text("Hi."))
    hi(here, effort="low")
    assert here.bodies()[0]["output_config"]["effort"] == "low"


def test_a_task_budget_is_told_to_the_model(stage):
    here = stage(text("Hi."))
    hi(here, task_budget={"total": 20000})
    assert here.bodies()[0]["output_config"]["task_budget"]["total"] == 20000


def test_structured_output(stage):
    schema = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}
    here = stage(call("StructuredOutput", {"n": 4}))
    end = result(ask(here, output_format={"type": "json_schema", "schema": schema}))
    assert end.structured_output == {"n": 4}
    offered = [tool for tool in here.bodies()[0]["tools"] if tool["name"] == "StructuredOutput"]
    assert offered[0]["input_schema"]["required"] == ["n"]


def test_partial_messages(stage):
    here = stage({"reply": [{"text": "Hello, world", "fragments": [5, 7]}]})
    messages = ask(here, include_partial_messages=True)
    events = [message.event for message in of(messages, StreamEvent)]
    deltas = [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
    assert deltas == ["Hello", ", ", "world"]
    assert events[0]["type"] == "message_start" and events[-1]["type"] == "message_stop"
    assert here.bodies()[0]["stream"] is True
    order = [type(message).__name__ for message in messages]
    assert order.index("AssistantMessage") < len(order) - order[::-1].index("StreamEvent")


def test_settings_as_json(stage):
    here = stage(call("Bash", {"command": "touch made"}), text("Done."))
    messages = ask(here, settings=json.dumps({"permissions": {"allow": ["Bash(touch made)"]}}))
    assert (here.work / "made").exists() and result(messages).permission_denials == []
    assert not answers(here.bodies()[1])[0].get("is_error")


def test_setting_sources_decide_which_files_count(stage):
    rules = {"permissions": {"allow": ["Bash(touch made)"]}}
    for sources, runs in ([], False), (["user"], True):
        here = stage(call("Bash", {"command": "touch made"}), text("Done."))
        (here.config / "settings.json").write_text(json.dumps(rules))
        denials = result(ask(here, setting_sources=sources)).permission_denials
        assert (here.work / "made").exists() is runs and (denials == []) is runs
        assert answers(here.bodies()[1])[0].get("is_error", False) is not runs


def test_further_directories(stage, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").write_text("from elsewhere")
    here = stage(call("Read", {"file_path": str(other / "a.txt")}), text("Done."))
    messages = ask(here, add_dirs=[str(other)])
    assert "from elsewhere" in plain(results(messages)[0].content)
    assert str(other) in json.dumps(here.bodies()[0]) and "from elsewhere" in json.dumps(answers(here.bodies()[1]))


def test_variables_reach_commands(stage):
    here = stage(call("Bash", {"command": "echo $COLOUR"}), text("Done."))
    messages = ask(here, env={"COLOUR": "blue"}, allowed_tools=["Bash"])
    assert results(messages)[0].content == "blue" and answers(here.bodies()[1])[0]["content"] == "blue"


def test_extra_arguments(stage):
    here = stage(text("Hi."))
    messages = ask(here, extra_args={"replay-user-messages": None})
    echoed = of(messages, UserMessage)[0].content
    assert [block.text for block in echoed] == ["Go."]
    assert last_texts(here.bodies()[0])[-1] == "Go."


def test_an_unknown_extra_argument_fails(stage):
    here = stage()
    with pytest.raises((ProcessError, CLIConnectionError)):
        ask(here, extra_args={"no-such-flag": None})
    assert any("unknown option '--no-such-flag'" in line for line in here.stderr)
    assert here.bodies() == []


def test_a_program_that_is_not_there(stage):
    here = stage()
    options = here.options()
    options.cli_path = "/no/such/program"

    async def run():
        async for _ in query(prompt="Go.", options=options):
            pass

    with pytest.raises(CLINotFoundError):
        asyncio.run(run())
    assert here.bodies() == []


def test_prompts_as_a_stream(stage):
    here = stage(text("One."), text("Two."))
    messages = ask(here, sent(said("first")))
    assert result(messages).result == "One."
    assert [last_texts(body)[-1] for body in here.bodies()] == ["first"]


def test_a_picture_in_a_prompt(stage):
    here = stage(text("A dot."))
    source = {"type": "base64", "media_type": "image/png", "data": ONE_PIXEL}
    content = [{"type": "text", "text": "What is this?"}, {"type": "image", "source": source}]
    assert result(ask(here, sent(said(content)))).result == "A dot."
    blocks = here.bodies()[0]["messages"][-1]["content"]
    images = [block for block in blocks if block["type"] == "image"]
    assert base64.b64decode(images[0]["source"]["data"]).startswith(b"\x89PNG")


def test_a_picture_and_a_page_that_the_server_gets_itself(stage):
    here = stage(text("Hi."), text("Hi."))
    picture = {"type": "image", "source": {"type": "url", "url": "https://example.org/wheel.png"}}
    paper = {"type": "document", "source": {"type": "url", "url": "https://example.org/wheel.pdf"}}
    messages = hi(here, sent(said([picture, paper, {"type": "text", "text": "What is this?"}])))
    assert here.bodies()[0]["messages"][-1]["content"][-3:-1] == [picture, paper]
    hi(here, "And?", resume=result(messages).session_id)
    assert [each for each in here.bodies()[1]["messages"][0]["content"] if each["type"] != "text"] == [picture, paper]


def test_an_api_error_is_a_result(stage):
    here = stage({"status": 400, "message": "no"})
    messages = []

    async def run():
        async for message in query(prompt="Go.", options=here.options()):
            messages.append(message)

    with pytest.raises(ResultError):
        asyncio.run(run())
    end = result(messages)
    assert (end.subtype, end.is_error, end.api_error_status) == ("success", True, 400)
    assert of(messages, AssistantMessage)[0].error == "invalid_request"
    assert len(here.bodies()) == 1, "it is not asked again"


def test_mentioned_files_are_attached(stage):
    here = stage(text("Hi."))
    (here.work / "notes.txt").write_text("buy milk")
    hi(here, "What is in @notes.txt?")
    assert "buy milk" in json.dumps(here.bodies()[0]["messages"])


def test_verbatim_prompts_mean_what_they_say(stage):
    here = stage(text("Hi."))
    (here.work / "notes.txt").write_text("buy milk")
    hi(here, "/look @notes.txt", verbatim_prompts=True)
    assert "buy milk" not in json.dumps(here.bodies()[0]["messages"])
    assert last_texts(here.bodies()[0])[-1] == "/look @notes.txt"


def test_an_unknown_command_asks_no_model(stage):
    here = stage()
    messages = []

    async def run():
        async for message in query(prompt="/nothing", options=here.options()):
            messages.append(message)

    with pytest.raises(ResultError):
        asyncio.run(run())
    assert result(messages).num_turns == 0 and here.bodies() == []


def test_agents_are_offered_and_run(stage):
    order = {"description": "find it", "prompt": "Find X.", "subagent_type": "finder"}
    here = stage(
        {"reply": [{"text": "X is here."}], "when": {"system": "You find"}},
        call("Agent", order),
        text("Found."),
    )
    agents = {"finder": AgentDefinition(description="Finds.", prompt="You find things.", tools=["Glob"])}
    messages = ask(here, agents=agents, allowed_tools=["Agent"])
    assert "finder" in system(messages, "init")[0]["agents"]
    started = system(messages, "task_started")[0]
    assert (started["subagent_type"], started["prompt"]) == ("finder", "Find X.")
    assert system(messages, "task_notification")[0]["status"] == "completed"
    inner = next(body for body in here.bodies() if "You find" in json.dumps(body.get("system")))
    assert [tool["name"] for tool in inner["tools"]] == ["Glob"]
    assert "X is here." in plain(results(messages)[0].content)


def test_words_of_agents_are_forwarded_when_wanted(stage):
    order = {"description": "say", "prompt": "Say it.", "subagent_type": "general-purpose"}
    for wanted in False, True:
        here = stage(
            {"reply": [{"text": "Inner words."}], "when": {"last_user_text": "Say it"}},
            call("Agent", order),
            text("Done."),
        )
        messages = ask(here, forward_subagent_text=wanted, allowed_tools=["Agent"])
        assert ("Inner words." in words(messages)) is wanted
        assert "Inner words." in json.dumps(answers(here.bodies()[-1])), "the model reads them anyway"


def test_stderr_reaches_the_caller(stage):
    here = stage(text("Hi."))
    messages = hi(here, mcp_servers={"files": {"url": "http://127.0.0.1/"}})
    assert any("files" in line for line in here.stderr)
    assert system(messages, "init")[0]["mcp_servers"][0]["status"] == "failed"
    assert not any(tool["name"].startswith("mcp__") for tool in here.bodies()[0]["tools"])


def test_hook_events_of_programs(stage):
    hooks = {"hooks": {"PreToolUse": [{"matcher": "Glob", "hooks": [{"type": "command", "command": "echo seen"}]}]}}
    here = stage(call("Glob", {"pattern": "*"}), text("Done."))
    messages = ask(here, include_hook_events=True, settings=json.dumps(hooks))
    told = of(messages, HookEventMessage)
    assert [event.subtype for event in told] == ["hook_started", "hook_response"]
    assert told[0].data["hook_id"] == told[1].data["hook_id"] and told[1].data["stdout"] == "seen\n"
    assert "seen" not in json.dumps(here.bodies()[1]["messages"]), "it said nothing to the model"


def test_a_hook_that_takes_its_time_is_told_while_it_runs(stage):
    here = stage(call("Bash", {"command": "echo hi"}), text("Done."))
    # It ends when somebody has seen what it printed.
    waits = "echo looking; while ! [ -e seen ]; do sleep 0.1; done; echo found"
    matched = [{"matcher": "Bash", "hooks": [{"type": "command", "command": waits}]}]
    settings = json.dumps({"hooks": {"PreToolUse": matched}})

    async def watch() -> list:
        messages = []
        options = here.options(settings=settings, include_hook_events=True, allowed_tools=["Bash"])
        async for message in query(prompt="Go.", options=options):
            messages.append(message)
            if getattr(message, "subtype", None) == "hook_progress":
                (here.work / "seen").touch()
        return messages

    messages = asyncio.run(asyncio.wait_for(watch(), HOOK_SECONDS_MAX))
    told = [message.data for message in messages if getattr(message, "subtype", "").startswith("hook_")]
    assert [each["subtype"] for each in told][:2] == ["hook_started", "hook_progress"], told
    assert told[1]["stdout"] == "looking\n" and told[-1]["subtype"] == "hook_response"
    assert told[-1]["stdout"] == "looking\nfound\n"
    assert {(each["hook_id"], each["hook_name"]) for each in told} == {(told[0]["hook_id"], "PreToolUse:Bash")}
    kinds = [type(message).__name__ for message in messages]
    assert kinds.index("AssistantMessage") < kinds.index("HookEventMessage"), "the call it is about comes first"
    assert len(here.bodies()) == 2


def test_large_results_stay_below_the_line_limit(stage):
    here = stage(call("Bash", {"command": "head -c 3000000 /dev/zero | tr '\\0' x"}), text("y" * 1_500_000))
    end = result(ask(here, allowed_tools=["Bash"]))
    assert end.is_error is False and end.result.startswith("yyy")
    assert len(json.dumps(answers(here.bodies()[1]))) < 40_000, "the model is sent a part"


def test_a_command_in_the_background_starts_a_turn_of_its_own(stage):
    here = stage(
        call("Bash", {"command": "sleep 0.3; echo late", "run_in_background": True}), text("Started."), text("It ended.")
    )
    messages = ask(here, allowed_tools=["Bash"])
    ends = [message for message in messages if type(message).__name__ == "ResultMessage"]
    assert [end.result for end in ends] == ["Started.", "It ended."]
    assert (ends[1].origin or {}).get("kind") == "task-notification"
    assert len(here.bodies()) == 3 and "completed" in " ".join(last_texts(here.bodies()[2]))


def test_a_session_id_of_ones_own(stage):
    here = stage(text("Hi."))
    mine = str(uuid.uuid4())
    assert result(ask(here, session_id=mine)).session_id == mine
    assert list(here.config.glob(f"projects/*/{mine}.jsonl"))
    assert len(here.bodies()) == 1


def test_servers_are_told_who_asks(stage):
    here = stage(text("Hi."))
    hi(here, client_app="my-app/1.2")
    agent = here.requests()[0]["headers"]["user-agent"]
    assert "sdk-py" in agent and "agent-sdk/" in agent and "client-app/my-app/1.2" in agent


def test_a_custom_prompt_that_is_not_kept(stage):
    here = stage(text("Hi."))
    hi(here, system_prompt={"type": "custom", "prompt": "You are a release bot.", "snapshot": False})
    assert [block["text"] for block in here.bodies()[0]["system"]] == ["You are a release bot."]


def test_a_prompt_without_what_differs_between_users(stage):
    here = stage(text("Hi."))
    hi(here, system_prompt={"type": "preset", "preset": "claude_code", "exclude_dynamic_sections": True})
    body = here.bodies()[0]
    assert str(here.work) not in json.dumps(body["system"]) and str(here.work) in json.dumps(body["messages"])


def test_where_it_works(stage, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    here = stage(call("Bash", {"command": "pwd"}), text("Hi."))
    messages = hi(here, cwd=tmp_path / "elsewhere", allowed_tools=["Bash"])
    place = str((tmp_path / "elsewhere").resolve())
    assert system(messages, "init")[0]["cwd"] == place and plain(results(messages)[0].content).strip() == place
    assert place in json.dumps(answers(here.bodies()[1]))


def test_settings_from_a_file(stage):
    here = stage(call("Bash", {"command": "touch made"}), text("Hi."))
    (here.home / "mine.json").write_text(json.dumps({"permissions": {"deny": ["Bash(touch:*)"]}}))
    messages = hi(here, settings=str(here.home / "mine.json"), allowed_tools=["Bash"])
    assert result(messages).permission_denials[0]["tool_name"] == "Bash" and not (here.work / "made").exists()
    assert answers(here.bodies()[1])[0]["is_error"] is True


@pytest.mark.skipif(sys.platform != "linux", reason="boxes are Linux's")
def test_a_box_around_commands(stage, tmp_path):
    command = f"touch inside; touch {tmp_path}/outside; echo done"
    here = stage(call("Bash", {"command": command}), text("Hi."))
    messages = hi(here, sandbox={"enabled": True, "autoAllowBashIfSandboxed": True})
    # Nobody had to be asked, and nothing outside was touched.
    assert result(messages).permission_denials == [] and (here.work / "inside").exists()
    assert not (tmp_path / "outside").exists()
    assert "done" in json.dumps(answers(here.bodies()[1]))


def test_skills_that_are_named(stage):
    here = stage(text("Hi."))
    for name in "wanted", "other":
        (here.config / "skills" / name).mkdir(parents=True)
        (here.config / "skills" / name / "SKILL.md").write_text(f"---\ndescription: the {name} one\n---\nDo.")
    messages = hi(here, skills=["wanted"])
    assert system(messages, "init")[0]["skills"] == ["wanted"]
    said = json.dumps(here.bodies()[0]["messages"])
    assert "the wanted one" in said and "the other one" not in said


def test_only_the_servers_that_are_named(stage):
    here = stage(text("Hi."))
    (here.work / ".mcp.json").write_text(json.dumps({"mcpServers": {"of-the-project": {"command": "serve"}}}))
    messages = hi(here, strict_mcp_config=True)
    assert system(messages, "init")[0]["mcp_servers"] == [] and here.stderr == []
    assert not any(tool["name"].startswith("mcp__") for tool in here.bodies()[0]["tools"])


def test_servers_from_a_file(stage):
    here = stage(text("Hi."))
    (here.home / "servers.json").write_text(json.dumps({"mcpServers": {"far": {"type": "http", "url": "http://127.0.0.1:9"}}}))
    messages = hi(here, mcp_servers=here.home / "servers.json")
    assert [server["name"] for server in system(messages, "init")[0]["mcp_servers"]] == ["far"]
    assert len(here.bodies()) == 1


def test_a_small_buffer_of_the_reader(stage):
    here = stage(text("Hi."))
    hi(here, max_buffer_size=200_000)
    assert len(here.bodies()) == 1


def test_planning_changes_nothing(stage):
    here = stage(call("Write", {"file_path": "a.txt", "content": "hi"}), text("Hi."))
    messages = hi(here, permission_mode="plan")
    assert not (here.work / "a.txt").exists() and results(messages)[0].is_error
    assert answers(here.bodies()[1])[0]["is_error"] is True and "plan" in json.dumps(here.bodies()[0]["messages"]).lower()


def test_nobody_is_asked_when_that_is_said(stage):
    here = stage(call("Bash", {"command": "touch made"}), text("Hi."))
    messages = hi(here, permission_mode="dontAsk")
    assert result(messages).permission_denials[0]["tool_name"] == "Bash"
    assert system(messages, "init")[0]["permissionMode"] == "dontAsk"
    assert answers(here.bodies()[1])[0]["is_error"] is True


def test_permissions_are_done_without_in_a_box(stage):
    here = stage(call("Bash", {"command": "touch made"}), text("Hi."))
    messages = hi(here, permission_mode="bypassPermissions", env={"IS_SANDBOX": "1"})
    assert (here.work / "made").exists() and result(messages).permission_denials == []
    assert system(messages, "init")[0]["permissionMode"] == "bypassPermissions"
    assert not answers(here.bodies()[1])[0].get("is_error")


def test_an_agent_with_a_model_and_an_end(stage):
    order = {"description": "look", "prompt": "Look.", "subagent_type": "looker"}
    glob = {"reply": [{"tool": "Glob", "input": {"pattern": "*"}}], "when": {"system": "You look"}, "times": 3}
    here = stage(glob, call("Agent", order), text("Hi."))
    agents = {
        "looker": AgentDefinition(
            description="Looks.", prompt="You look.", tools=["Glob"], model="claude-opus-5-5", maxTurns=2, effort="low"
        )
    }
    messages = ask(here, agents=agents, allowed_tools=["Agent"])
    inner = [body for body in here.bodies() if "You look" in json.dumps(body.get("system"))]
    assert len(inner) == 2 and inner[0]["model"] == "claude-opus-5-5" and inner[0]["output_config"]["effort"] == "low"
    assert result(messages).result == "Hi." and "claude-opus-5-5" in result(messages).model_usage


def test_what_a_subscription_allows_is_told(stage):
    limits = {
        "anthropic-ratelimit-unified-status": "allowed_warning",
        "anthropic-ratelimit-unified-representative-claim": "seven_day",
        "anthropic-ratelimit-unified-7d-utilization": "0.91",
        "anthropic-ratelimit-unified-reset": "1767225600",
    }
    here = stage(text("Hi.", headers=limits))
    messages = hi(here)
    info = of(messages, RateLimitEvent)[0].rate_limit_info
    assert (info.status, info.rate_limit_type) == ("allowed_warning", "seven_day")
    assert (info.utilization, info.resets_at) == (0.91, 1767225600)
    assert len(here.bodies()) == 1


def test_an_empty_prompt_has_a_result_and_the_session_goes_on(stage):
    here = stage(text("Hi."))

    async def run() -> list:
        async with here.client() as client:
            ends = []
            for prompt in ("", "Go."):
                await client.query(prompt)
                ends += [message async for message in client.receive_response() if isinstance(message, ResultMessage)]
            return ends

    empty, good = asyncio.run(run())
    assert empty.is_error and empty.subtype == "error_during_execution"
    assert good.result == "Hi." and len(here.bodies()) == 1


def test_refusals_by_rules_are_told_as_they_happen(stage):
    here = stage(call("Bash", {"command": "touch made"}), text("Then not."))
    messages = ask(here, settings='{"permissions": {"deny": ["Bash(touch:*)"]}}')
    told = system(messages, "permission_denied")
    assert [(one["tool_name"], one["decision_reason_type"]) for one in told] == [("Bash", "rule")]
    assert plain(answers(here.bodies()[1])[0]["content"]) == told[0]["message"]


def test_an_agent_beside_the_conversation_that_remembers(stage):
    order = {"description": "note", "prompt": "Note it.", "subagent_type": "scribe"}
    here = stage(
        text("Noted.", when={"system": "You note"}),
        call("Agent", order),
        text("Started."),
        text("It is noted."),
    )
    agents = {"scribe": AgentDefinition(description="Notes.", prompt="You note.", background=True, memory="project")}
    messages = asyncio.run(here.query(agents=agents, allowed_tools=["Agent"]))
    inner = [body for body in here.bodies() if "You note" in json.dumps(body.get("system"))]
    assert len(inner) == 1 and ".claude/agent-memory/scribe" in json.dumps(inner[0])
    started = [message for message in messages if isinstance(message, TaskStartedMessage)]
    ended = [message for message in messages if isinstance(message, TaskNotificationMessage)]
    assert (len(started), [message.status for message in ended]) == (1, ["completed"])
    last = of(messages, ResultMessage)[-1]
    assert last.result == "It is noted."


def test_a_session_whose_agent_speaks_first(stage):
    here = stage(text("Hi."))
    agents = {"chief": AgentDefinition(description="Leads.", prompt="You lead.", initialPrompt="Take stock.")}
    hi(here, agents=agents, extra_args={"agent": "chief"})
    assert last_texts(here.bodies()[0])[-1].startswith("Take stock.\n\n")


@pytest.mark.skipif(sys.platform != "linux", reason="names of users are asked for the Linux way")
def test_a_process_of_a_user_who_is_named(stage):
    me = pwd.getpwuid(os.getuid()).pw_name
    here = stage(call("Bash", {"command": "id -un"}), text("Hi."))
    messages = hi(here, user=me, allowed_tools=["Bash"])
    assert plain(results(messages)[0].content).strip() == me
    assert me in json.dumps(answers(here.bodies()[1]))


def test_an_agent_with_servers_skills_and_a_mode_of_its_own(stage):
    order = {"description": "make", "prompt": "Make it.", "subagent_type": "maker"}
    write = {"file_path": "a.txt", "content": "hi"}
    here = stage(
        call("Write", write, when={"system": "You make"}),
        text("Made.", when={"system": "You make"}),
        call("Agent", order),
        text("Hi."),
    )
    (here.config / "skills/brew").mkdir(parents=True)
    (here.config / "skills/brew/SKILL.md").write_text("---\ndescription: Makes tea.\n---\nBoil the water first.")
    weather = {"command": sys.executable, "args": [str(Path(__file__).with_name("weather_server.py")), "stdio"]}
    agents = {
        "maker": AgentDefinition(
            description="Makes.",
            prompt="You make.",
            disallowedTools=["Bash"],
            skills=["brew"],
            mcpServers=[{"weather": weather}],
            permissionMode="plan",
        )
    }
    options = {"allowed_tools": ["Agent"], "setting_sources": ["user"], "permission_mode": "acceptEdits"}
    messages = ask(here, agents=agents, **options)
    assert result(messages).result == "Hi." and not (here.work / "a.txt").exists()
    outer = next(body for body in here.bodies() if "You make" not in json.dumps(body.get("system")))
    inner = [body for body in here.bodies() if "You make" in json.dumps(body.get("system"))]
    offered = [{tool["name"] for tool in body["tools"]} for body in (outer, inner[0])]
    assert "Bash" in offered[0] and "Bash" not in offered[1]
    assert not any("weather" in name for name in offered[0]) and "mcp__weather__forecast" in offered[1]
    assert "Boil the water first." in json.dumps(inner[0]["messages"])
    assert answers(inner[1])[0]["is_error"] is True, "an agent may be held closer than the session"


def test_a_log_on_standard_error(stage):
    here = stage(text("PAYLOAD."))
    assert result(ask(here, extra_args={"debug-to-stderr": None})).result == "PAYLOAD."
    told = "\n".join(here.stderr)
    assert "[api] " in told and "PAYLOAD" not in told
    assert len(here.bodies()) == 1
