"""Sessions on disk, as the official agent SDK finds, reads, changes and goes on with them."""

from __future__ import annotations

import asyncio
import json

import claude_agent_sdk as sdk
import pytest
from agent_stage import Stage, answers, call, last_texts, result, system, text
from claude_agent_sdk import AgentDefinition, InMemorySessionStore, ProcessError, ResultError


@pytest.fixture
def at(stage, monkeypatch):
    """A stage whose sessions the SDK's own functions find."""

    def start(*steps: dict) -> Stage:
        here = stage(*steps)
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(here.config))
        return here

    return start


def ask(here: Stage, prompt: str = "Go.", **options: object):
    return result(asyncio.run(here.query(prompt, **options)))


def spoken(body: dict) -> str:
    return json.dumps(body["messages"])


def test_sessions_are_listed(at):
    here = at(text("One."), text("Two."))
    first, second = ask(here, "The first one."), ask(here, "The second one.")
    listed = {info.session_id: info for info in sdk.list_sessions(directory=str(here.work))}
    assert set(listed) == {first.session_id, second.session_id}
    assert listed[first.session_id].first_prompt == "The first one."
    assert listed[first.session_id].cwd == str(here.work.resolve())
    assert "The first one." not in spoken(here.bodies()[1]), "they know nothing of each other"


def test_messages_of_a_session_are_read(at):
    here = at(call("Glob", {"pattern": "*"}), text("Nothing."))
    session = ask(here, "What is here?").session_id
    messages = sdk.get_session_messages(session, directory=str(here.work))
    kinds = [message.type for message in messages]
    assert kinds[0] == "user" and kinds[-1] == "assistant" and "Nothing." in json.dumps(messages[-1].message)
    assert "What is here?" in json.dumps([message.message for message in messages])
    # What is read is what the model was sent.
    sent = [block for message in here.bodies()[1]["messages"] for block in message["content"]]
    call_sent = next(block for block in sent if block["type"] == "tool_use")
    assert call_sent["id"] in json.dumps([message.message for message in messages])


def test_a_session_is_renamed_and_tagged(at):
    here = at(text("One."), text("Two."))
    session = ask(here).session_id
    sdk.rename_session(session, "My title", directory=str(here.work))
    sdk.tag_session(session, "mine", directory=str(here.work))
    info = sdk.get_session_info(session, directory=str(here.work))
    assert (info.custom_title, info.tag) == ("My title", "mine")
    # What others write into the file does not disturb us.
    assert ask(here, "Again.", resume=session).result == "Two."
    assert "One." in spoken(here.bodies()[1])


def test_a_session_is_deleted(at):
    here = at(text("One."))
    session = ask(here).session_id
    sdk.delete_session(session, directory=str(here.work))
    assert sdk.list_sessions(directory=str(here.work)) == []
    with pytest.raises((ResultError, ProcessError)):
        ask(here, resume=session)
    assert len(here.bodies()) == 1, "what is gone is not gone on with"


def test_a_session_that_the_sdk_forked_goes_on(at):
    here = at(text("One."), text("Two."))
    session = ask(here, "Remember me.").session_id
    forked = sdk.fork_session(session, directory=str(here.work))
    assert ask(here, "Again.", resume=forked.session_id).session_id == forked.session_id
    assert "Remember me." in spoken(here.bodies()[1])


def test_resume_goes_on_with_the_same_session(at):
    here = at(text("One."), text("Two."))
    session = ask(here, "Remember me.").session_id
    again = ask(here, "Again.", resume=session)
    assert again.session_id == session
    assert "Remember me." in spoken(here.bodies()[1]) and len(list(here.config.glob("projects/*/*.jsonl"))) == 1


def test_resume_works_from_another_directory(at, tmp_path):
    here = at(text("One."), text("Two."))
    session = ask(here, "Remember me.").session_id
    other = tmp_path / "other"
    other.mkdir()
    assert ask(here, "Again.", resume=session, cwd=str(other)).session_id == session
    assert "Remember me." in spoken(here.bodies()[1])


def test_continue_takes_the_newest(at):
    here = at(text("One."), text("Two."), text("Three."))
    ask(here, "The older.")
    newest = ask(here, "The newer.").session_id
    assert ask(here, "Again.", continue_conversation=True).session_id == newest
    assert "The newer." in spoken(here.bodies()[2]) and "The older." not in spoken(here.bodies()[2])


def test_a_fork_has_an_id_of_its_own_and_leaves_the_other_alone(at):
    here = at(text("One."), text("Two."), text("Three."))
    session = ask(here, "Remember me.").session_id
    file = next(here.config.glob(f"projects/*/{session}.jsonl"))
    before = file.read_bytes()
    forked = ask(here, "Again.", resume=session, fork_session=True).session_id
    assert forked != session and file.read_bytes() == before
    assert "Remember me." in spoken(here.bodies()[1])
    assert ask(here, "And again.", resume=forked).session_id == forked
    assert "Again." in spoken(here.bodies()[2])


def test_resume_from_the_middle(at):
    here = at(text("One."), text("Two."), text("Three."))
    session = ask(here, "The first.").session_id
    ask(here, "The second.", resume=session)
    messages = sdk.get_session_messages(session, directory=str(here.work))
    first_answer = next(message for message in messages if message.type == "assistant")
    assert ask(here, "Otherwise.", resume=session, resume_session_at=first_answer.uuid).session_id == session
    assert "One." in spoken(here.bodies()[2]) and "The second." not in spoken(here.bodies()[2])


def test_resume_without_a_turn(at):
    here = at(text("One."), text("Two."), text("Three."))
    session = ask(here, "The first.").session_id
    ask(here, "The second.", resume=session)
    messages = sdk.get_session_messages(session, directory=str(here.work))
    second = next(m for m in messages if m.type == "user" and "The second." in json.dumps(m.message))
    assert ask(here, "Otherwise.", resume=session, resume_drops_turn=second.uuid).result == "Three."
    sent = spoken(here.bodies()[2])
    assert "The first." in sent and "One." in sent and "The second." not in sent and "Two." not in sent


def test_a_resume_that_would_forget_more_than_was_seen_is_refused(at):
    here = at(text("One."), text("Two."), text("Three."), text("Four."))
    session = ask(here, "The first.").session_id
    ask(here, "The second.", resume=session)
    messages = sdk.get_session_messages(session, directory=str(here.work))
    first_answer = next(message for message in messages if message.type == "assistant")
    second = next(m for m in messages if m.type == "user" and "The second." in json.dumps(m.message))
    back = {"resume": session, "resume_session_at": first_answer.uuid, "resume_drops_turn": second.uuid}
    assert ask(here, "Otherwise.", fork_session=True, **back).result == "Three."
    ask(here, "The third.", resume=session)
    with pytest.raises((ResultError, ProcessError)) as raised:
        ask(here, "Otherwise.", fork_session=True, **back)
    assert "Resume rejected by --resume-drops-turn:" in str(raised.value) + "".join(here.stderr)
    assert len(here.bodies()) == 4 and "The second." not in spoken(here.bodies()[2])


def test_an_unknown_session_is_an_error(at):
    here = at()
    unknown = "0f0e0d0c-0b0a-4908-8706-050403020100"
    with pytest.raises((ResultError, ProcessError)) as raised:
        ask(here, resume=unknown)
    assert f"No conversation found with session ID: {unknown}" in str(raised.value) + "".join(here.stderr)
    assert here.bodies() == []


def test_nothing_is_kept_when_it_should_not_be(at):
    here = at(text("One."))
    assert ask(here, extra_args={"no-session-persistence": None}).result == "One."
    assert list(here.config.glob("projects/*/*.jsonl")) == []
    assert len(here.bodies()) == 1


def test_a_store_gets_every_line_and_gives_them_back(at):
    here = at(text("One."), text("Two."))
    store = InMemorySessionStore()
    session = ask(here, "Remember me.", session_store=store).session_id
    listed = asyncio.run(sdk.list_sessions_from_store(store, directory=str(here.work)))
    assert [info.session_id for info in listed] == [session]
    stored = asyncio.run(sdk.get_session_messages_from_store(store, session, directory=str(here.work)))
    assert "Remember me." in json.dumps([message.message for message in stored])
    # The file itself is not needed any more.
    for file in here.config.glob("projects/*/*.jsonl"):
        file.unlink()
    assert ask(here, "Again.", resume=session, session_store=store).session_id == session
    assert "Remember me." in spoken(here.bodies()[1])


def records(here: Stage) -> list:
    return list(here.config.glob("projects/*/*.jsonl"))


def test_sub_agents_of_a_session_are_read(at):
    order = {"description": "say", "prompt": "Say it.", "subagent_type": "general-purpose"}
    inner = {"reply": [{"text": "Inner words."}], "when": {"last_user_text": "Say it"}}
    here = at(inner, call("Agent", order), text("Done."))
    session = ask(here, allowed_tools=["Agent"]).session_id
    agents = sdk.list_subagents(session, directory=str(here.work))
    assert len(agents) == 1
    said = [message.message for message in sdk.get_subagent_messages(session, agents[0], directory=str(here.work))]
    assert "Say it." in json.dumps(said) and "Inner words." in json.dumps(said)
    assert "Inner words." in json.dumps(answers(here.bodies()[-1]))
    # The list of sessions has no sub-agents.
    assert [info.session_id for info in sdk.list_sessions(directory=str(here.work))] == [session]


def test_a_session_with_large_results_is_read_forked_and_deleted(at):
    here = at(call("Read", {"file_path": "big.png"}), text("One."), text("Two."), text("Three."))
    (here.work / "big.png").write_bytes(picture(300, 300))
    session = ask(here, "Look at the picture.").session_id
    beside = list(here.config.glob(f"projects/*/{session}/blobs/*"))
    assert beside, "the picture is kept beside the record"
    messages = sdk.get_session_messages(session, directory=str(here.work))
    assert "Look at the picture." in json.dumps([message.message for message in messages])
    forked = sdk.fork_session(session, directory=str(here.work), title="Another").session_id
    assert sdk.get_session_info(forked, directory=str(here.work)).custom_title == "Another"
    assert ask(here, "And?", resume=forked).result == "Two."
    pictures = lambda body: json.dumps(body["messages"]).count('"type": "image"')  # noqa: E731
    assert pictures(here.bodies()[1]) == pictures(here.bodies()[2]) == 1, "the model is sent it again, whole"
    assert ask(here, "And here?", resume=session).result == "Three."
    sdk.delete_session(forked, directory=str(here.work))
    assert [file.stem for file in records(here)] == [session]
    sdk.delete_session(session, directory=str(here.work))
    assert records(here) == [] and list(here.config.glob(f"projects/*/{session}")) == []


def test_a_session_that_was_summed_up_is_read_and_gone_on_with(at):
    here = at(text("One. " * 2000), text("Still one. " * 2000), text("They counted jars."), text("Two."))
    session = ask(here, "Count the jars.").session_id
    ask(here, "Count again.", resume=session)
    summed_up = ask(here, "/compact", resume=session)
    assert summed_up.num_turns == 0 and not summed_up.is_error
    # Readers of the SDK find nothing before a boundary.
    read = json.dumps([message.message for message in sdk.get_session_messages(session, directory=str(here.work))])
    assert "They counted jars." in read
    forked = sdk.fork_session(session, directory=str(here.work)).session_id
    assert ask(here, "Go on.", resume=forked).result == "Two."
    assert "They counted jars." in spoken(here.bodies()[-1])


def test_a_session_is_forked_up_to_a_message(at):
    here = at(text("One."), text("Two."), text("Three."))
    session = ask(here, "The first.").session_id
    ask(here, "The second.", resume=session)
    messages = sdk.get_session_messages(session, directory=str(here.work))
    first_answer = next(message for message in messages if message.type == "assistant")
    forked = sdk.fork_session(session, directory=str(here.work), up_to_message_id=first_answer.uuid).session_id
    assert ask(here, "Otherwise.", resume=forked).result == "Three."
    assert "The first." in spoken(here.bodies()[2]) and "The second." not in spoken(here.bodies()[2])


def test_a_session_is_named_and_tagged_anew(at):
    here = at(text("One."))
    session = ask(here).session_id
    for title in "First title", "Second title":
        sdk.rename_session(session, title, directory=str(here.work))
    sdk.tag_session(session, "mine", directory=str(here.work))
    sdk.tag_session(session, None, directory=str(here.work))
    info = sdk.get_session_info(session)
    assert (info.custom_title, info.tag) == ("Second title", None)
    assert len(here.bodies()) == 1, "no model is asked for a title"


def test_a_record_is_brought_into_a_store_and_changed_there(at):
    here = at(text("One."), text("Two."))
    session = ask(here, "Remember me.").session_id
    store, place = InMemorySessionStore(), str(here.work)

    async def program():
        await sdk.import_session_to_store(session, store, directory=place)
        await sdk.rename_session_via_store(store, session, "In the store", directory=place)
        await sdk.tag_session_via_store(store, session, "kept", directory=place)
        forked = await sdk.fork_session_via_store(store, session, directory=place)
        info = await sdk.get_session_info_from_store(store, session, directory=place)
        await sdk.delete_session_via_store(store, session, directory=place)
        return forked.session_id, info, await sdk.list_sessions_from_store(store, directory=place)

    forked, info, left = asyncio.run(program())
    assert (info.custom_title, info.tag) == ("In the store", "kept")
    assert [each.session_id for each in left] == [forked]
    for file in records(here):
        file.unlink()
    assert ask(here, "Again.", resume=forked, session_store=store).result == "Two."
    assert "Remember me." in spoken(here.bodies()[1])


def test_a_store_that_is_told_at_once(at):
    here = at(call("Bash", {"command": "true"}), text("One."))
    store = InMemorySessionStore()
    session = ask(here, session_store=store, session_store_flush="eager", allowed_tools=["Bash"]).session_id
    stored = asyncio.run(sdk.get_session_messages_from_store(store, session, directory=str(here.work)))
    on_disk = sdk.get_session_messages(session, directory=str(here.work))
    assert [message.uuid for message in stored] == [message.uuid for message in on_disk]
    assert answers(here.bodies()[1])[0]["tool_use_id"] in json.dumps([message.message for message in stored])


def test_a_long_result_in_a_store_is_whole(at):
    here = at(call("Read", {"file_path": "big.png"}), text("One."), text("Two."))
    (here.work / "big.png").write_bytes(picture(300, 300))
    store = InMemorySessionStore()
    session = ask(here, session_store=store, load_timeout_ms=20_000).session_id
    # Another machine has the store alone.
    for file in here.config.glob("projects/**/*"):
        if file.is_file():
            file.unlink()
    assert ask(here, "Again.", resume=session, session_store=store).result == "Two."
    assert '"type": "image"' in spoken(here.bodies()[2])


def test_a_picture_that_no_line_can_hold_is_whole_in_a_store(at):
    here = at(call("Read", {"file_path": "huge.png"}), text("One."), text("Two."))
    (here.work / "huge.png").write_bytes(picture(800, 800))
    store = InMemorySessionStore()
    session = ask(here, session_store=store).session_id
    for file in here.config.glob("projects/**/*"):
        if file.is_file():
            file.unlink()
    assert ask(here, "Again.", resume=session, session_store=store).result == "Two."

    def images(body: dict) -> list[str]:
        results = [block for message in body["messages"] for block in message["content"] if block["type"] == "tool_result"]
        return [part["source"]["data"] for block in results for part in block["content"] if part["type"] == "image"]

    before, after = (images(here.bodies()[nth]) for nth in (1, 2))
    assert len(before) == 1 and len(before[0]) > 1024 * 1024, "longer than a line may be"
    assert after == before


def test_sub_agents_in_a_store_are_read(at):
    order = {"description": "look", "prompt": "Look.", "subagent_type": "general-purpose"}
    here = at(call("Agent", order), text("Inner words."), text("Done."))
    store, place = InMemorySessionStore(), str(here.work)
    session = ask(here, session_store=store, allowed_tools=["Agent"]).session_id
    agents = asyncio.run(sdk.list_subagents_from_store(store, session, directory=place))
    assert len(agents) == 1
    said = asyncio.run(sdk.get_subagent_messages_from_store(store, session, agents[0], directory=place))
    assert "Inner words." in json.dumps([message.message for message in said])
    assert "Inner words." in spoken(here.bodies()[2])


def picture(width: int, height: int) -> bytes:
    """A picture that does not get small by packing."""
    import random
    import struct
    import zlib

    chance = random.Random(1)
    rows = b"".join(b"\0" + chance.randbytes(3 * width) for _ in range(height))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def test_a_store_that_takes_too_long_is_not_waited_for(at):
    class Slow(InMemorySessionStore):
        async def load(self, key):
            await asyncio.sleep(20)

    here = at(text("One."))
    session = ask(here).session_id
    with pytest.raises(RuntimeError):
        ask(here, "Again.", resume=session, session_store=Slow(), load_timeout_ms=200)
    assert len(here.bodies()) == 1


def test_records_are_where_the_sdk_looks_for_them(at):
    here = at(text("One."))
    session = ask(here).session_id
    key = sdk.project_key_for_directory(str(here.work))
    assert (here.config / "projects" / key / f"{session}.jsonl").exists()
    assert len(here.bodies()) == 1


def test_lines_are_summed_up_by_the_sdk_as_they_come(at):
    here = at(text("One."))
    session = ask(here, "What is here?").session_id
    sdk.rename_session(session, "My title", directory=str(here.work))
    file = next(here.config.glob(f"projects/*/{session}.jsonl"))
    key = {"project_key": sdk.project_key_for_directory(str(here.work)), "session_id": session}
    summary = None
    for line in file.read_text().splitlines():
        summary = sdk.fold_session_summary(summary, key, [json.loads(line)])
    assert summary["session_id"] == session
    told = json.dumps(summary["data"])
    assert "My title" in told and "What is here?" in told and str(here.work) in told
    assert "What is here?" in spoken(here.bodies()[0])


def test_a_session_goes_on_as_the_agent_it_worked_as(at):
    here = at({"reply": "Yes.", "always": True})
    agents = {
        "chief": AgentDefinition(description="Leads.", prompt="You lead.", tools=["Read"], model="claude-haiku-4-5")
    }
    session = ask(here, "The first.", agents=agents, extra_args={"agent": "chief"}).session_id
    ask(here, "The second.", agents=agents, resume=session)
    ask(here, "The fork.", agents=agents, resume=session, fork_session=True)
    for body in here.bodies():
        assert body["system"][-1]["text"] == "You lead." and body["model"] == "claude-haiku-4-5"
        assert [tool["name"] for tool in body["tools"]] == ["Read"]
    # Nobody describes it any more: that is told, once, and the session goes on.
    messages = asyncio.run(here.query("The third.", resume=session))
    told = [said["content"] for said in system(messages, "informational") if "'chief'" in said["content"]]
    assert len(told) == 1 and "which this run does not have" in told[0]
    assert "You lead." not in json.dumps(here.bodies()[-1].get("system")) and len(here.bodies()[-1]["tools"]) > 1
    # The line that names it is in nobody's way.
    (listed,) = [info for info in sdk.list_sessions(directory=str(here.work)) if info.session_id == session]
    assert listed.first_prompt == "The first."
    said = [json.dumps(each.message) for each in sdk.get_session_messages(session, directory=str(here.work))]
    assert sum("The " in each for each in said) == 3


def test_calls_side_by_side_of_another_program_are_gone_on_with(at):
    here = at({"reply": "Yes.", "always": True})
    session = ask(here, "The first.").session_id
    file = next(here.config.glob(f"projects/*/{session}.jsonl"))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    last = [line for line in lines if line.get("type") == "assistant"][-1]
    ids = [f"00000000-0000-4000-8000-00000000000{n}" for n in range(6)]

    def line(own: int, parent: str, kind: str, block: dict) -> dict:
        message = {"role": kind, "content": [block]}
        if kind == "assistant":
            message |= {"id": "msg_others", "type": "message", "model": "claude-sonnet-5-5"}
        rest = {"isSidechain": False, "userType": "external", "timestamp": "2026-01-01T00:00:00.000Z"}
        return {"parentUuid": parent, "uuid": ids[own], "type": kind, "sessionId": session, "message": message, **rest}

    def made(call: str) -> dict:
        return {"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": "/none"}}

    def brought(call: str) -> dict:
        return {"type": "tool_result", "tool_use_id": call, "content": f"of {call}"}

    prompt = line(0, last["uuid"], "user", {"type": "text", "text": "Look twice."})
    calls = [line(1, ids[0], "assistant", made("toolu_a")), line(2, ids[1], "assistant", made("toolu_b"))]
    # Each follows its own call: the second call is on no way back from the last line.
    results = [line(3, ids[2], "user", brought("toolu_b")), line(4, ids[1], "user", brought("toolu_a"))]
    with file.open("a") as record:
        record.writelines(json.dumps(each, separators=(",", ":")) + "\n" for each in [prompt, *calls, *results])
    ask(here, "Again.", resume=session)
    sent = spoken(here.bodies()[-1])
    for call in ("toolu_a", "toolu_b"):
        assert sent.count(f'"id": "{call}"') == 1 and sent.count(f"of {call}") == 1
    read = json.dumps([each.message for each in sdk.get_session_messages(session, directory=str(here.work))])
    assert all(f"of {call}" in read for call in ("toolu_a", "toolu_b"))


def test_what_a_session_has_cost_goes_on_with_it(at):
    here = at({"reply": [{"text": "Yes."}], "always": True})
    first = ask(here, "The first.")
    second = ask(here, "The second.", resume=first.session_id)
    forked = ask(here, "The fork.", resume=first.session_id, fork_session=True)
    # A cap is about one process: what was spent before does not count.
    capped = ask(here, "The third.", resume=first.session_id, max_budget_usd=first.total_cost_usd)
    costs = [each.total_cost_usd for each in (first, second, forked, capped)]
    assert 0 < costs[0] < costs[1] < costs[2] and costs[1] < costs[3]
    ((_, before),) = first.model_usage.items()
    ((_, after),) = second.model_usage.items()
    assert after["outputTokens"] == before["outputTokens"] + second.usage["output_tokens"]
    assert len(here.bodies()) == 4


def test_a_file_that_was_read_before_need_not_be_read_again(at):
    def edit(path: str, old: str, new: str) -> dict:
        return call("Edit", {"file_path": path, "old_string": old, "new_string": new})

    steps = [
        call("Write", {"file_path": "ours.txt", "content": "one\n"}),
        call("Read", {"file_path": "theirs.txt"}),
        call("Read", {"file_path": "long.txt", "offset": 3, "limit": 1}),
        text("Done."),
        edit("ours.txt", "one", "two"),
        edit("theirs.txt", "red", "blue"),
        edit("long.txt", "5", "five"),
        edit("never.txt", "x", "y"),
        text("Done."),
    ]
    here = at(*steps)
    (here.work / "theirs.txt").write_text("red\n")
    (here.work / "long.txt").write_text("".join(f"{n}\n" for n in range(9)))
    (here.work / "never.txt").write_text("x\n")
    session = ask(here, "First.", permission_mode="acceptEdits").session_id
    (here.work / "theirs.txt").write_text("red\nand more\n")
    ask(here, "Second.", permission_mode="acceptEdits", resume=session)
    bodies = here.bodies()
    # What changed meanwhile is told once.
    told = [text for text in last_texts(bodies[4]) if "theirs.txt" in text]
    assert len(told) == 1 and "ours.txt" not in told[0] and "theirs.txt" not in json.dumps(bodies[5]["messages"][-1])
    refused = [answers(body)[0].get("is_error", False) for body in bodies[5:]]
    assert refused == [False, False, True, True]
    assert [(here.work / name).read_text() for name in ("ours.txt", "theirs.txt")] == ["two\n", "blue\nand more\n"]
