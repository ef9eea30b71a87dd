"""Sessions on disk, as the official agent SDK finds, reads, changes and goes on with them."""

from __future__ import annotations

import asyncio
import json

import claude_agent_sdk as sdk
import pytest
from agent_stage import Stage, call, result, text
from claude_agent_sdk import InMemorySessionStore, ProcessError, ResultError


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


def test_messages_of_a_session_are_read(at):
    here = at(call("Glob", {"pattern": "*"}), text("Nothing."))
    session = ask(here, "What is here?").session_id
    messages = sdk.get_session_messages(session, directory=str(here.work))
    kinds = [message.type for message in messages]
    assert kinds[0] == "user" and kinds[-1] == "assistant" and "Nothing." in json.dumps(messages[-1].message)
    assert "What is here?" in json.dumps([message.message for message in messages])


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
    ask(here, "Otherwise.", resume=session, resume_session_at=first_answer.uuid)
    assert "One." in spoken(here.bodies()[2]) and "The second." not in spoken(here.bodies()[2])


def test_resume_without_a_turn(at):
    here = at(text("One."), text("Two."), text("Three."))
    session = ask(here, "The first.").session_id
    ask(here, "The second.", resume=session)
    messages = sdk.get_session_messages(session, directory=str(here.work))
    second = next(m for m in messages if m.type == "user" and "The second." in json.dumps(m.message))
    ask(here, "Otherwise.", resume=session, resume_drops_turn=second.uuid)
    sent = spoken(here.bodies()[2])
    assert "The first." in sent and "One." in sent and "The second." not in sent and "Two." not in sent


def test_an_unknown_session_is_an_error(at):
    here = at()
    unknown = "0f0e0d0c-0b0a-4908-8706-050403020100"
    with pytest.raises((ResultError, ProcessError)) as raised:
        ask(here, resume=unknown)
    assert f"No conversation found with session ID: {unknown}" in str(raised.value) + "".join(here.stderr)


def test_nothing_is_kept_when_it_should_not_be(at):
    here = at(text("One."))
    ask(here, extra_args={"no-session-persistence": None})
    assert list(here.config.glob("projects/*/*.jsonl")) == []


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
