"""A repository with one of everything, without a client and through the SDK: what happens is compared line by line."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agent_stage import Stage, call, text
from claude_agent_sdk import AssistantMessage, ResultMessage, SystemMessage, UserMessage, create_sdk_mcp_server, tool

SAMPLE = Path(__file__).parents[1] / "sample"
EXPECTED = json.loads((SAMPLE / "expected.json").read_text())
INSIDE = "mcp__inside__note"
NOTES = ["mcp__notes__note", "mcp__far__note", "mcp__old__note", "mcp__plugin_kit_tools__note"]
STATUS_WAIT_SECONDS = 0.05


def steps(notes: list[str]) -> list[dict]:
    """What the model does."""
    return [
        text("It is small."),
        call("Skill", {"skill": "greet", "args": "Ann"}),
        {"reply": [{"tool": name, "input": {"text": "one"}} for name in notes]},
        call("Agent", {"subagent_type": "reviewer", "description": "Review", "prompt": "Review it."}),
        text("Nothing is wrong."),
        {"reply": [{"tool": "Bash", "input": {"command": command}} for command in ["echo done", "rm -rf gone"]]},
        text("All done."),
    ]


@pytest.fixture
def sample(stage: Callable[..., Stage]) -> Iterator[Callable[[list[str]], tuple[Stage, dict[str, str]]]]:
    """A function from the tools that are called to a stage with a trusted copy of the sample, and its environment."""
    running: list[subprocess.Popen[str]] = []

    def start(notes: list[str]) -> tuple[Stage, dict[str, str]]:
        here = stage(*steps(notes))
        shutil.copytree(SAMPLE, here.work, dirs_exist_ok=True)
        serve = [sys.executable, str(SAMPLE / "server.py"), "serve"]
        gate = {"SAMPLE_GATE": str(here.work.parent / "gate")}
        server = subprocess.Popen(serve, stdout=subprocess.PIPE, text=True, env={**os.environ, **gate})
        running.append(server)
        assert server.stdout is not None
        address = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        env = {"SAMPLE_HTTP": address, "SAMPLE_SSE": address, "SAMPLE_LOG": str(here.work.parent / "hooks.log"), **gate}
        trust = [os.environ["PELTON_BIN"], "trust", "--yes"]
        subprocess.run(trust, cwd=here.work, env={**os.environ, **here.env(**env)}, check=True, capture_output=True)
        return here, env

    yield start
    for server in running:
        server.kill()
        server.wait()


def line(frame: dict) -> str | None:
    """What a frame says, without what is different every time."""
    inside = "  " if frame.get("parent_tool_use_id") else ""
    kind = frame["type"]
    if kind == "system" and frame["subtype"] == "init":
        return "init " + json.dumps(loaded(frame))
    if kind == "result":
        return f"result {frame['subtype']} {frame.get('result')}"
    if kind not in ("assistant", "user"):
        return None
    content = frame["message"]["content"]
    if isinstance(content, str):
        return f"{inside}{kind} {content.splitlines()[0]}"
    (block,) = content
    match block["type"]:
        case "text":
            return f"{inside}{kind} {block['text'].splitlines()[0]}"
        case "tool_use":
            return f"{inside}calls {block['name']}"
        case "tool_result":
            said = block["content"]
            said = said if isinstance(said, str) else "".join(part.get("text", "") for part in said)
            return f"{inside}{'refused' if block.get('is_error') else 'answered'} {said.splitlines()[0]}"
    return f"{inside}{kind} {block['type']}"


def loaded(init: dict) -> dict:
    """What of the sample was loaded, and what is pending."""
    mine = ("greet", "look", "kit:")
    return {
        "servers": sorted(f"{server['name']} {server['status']}" for server in init["mcp_servers"]),
        "tools": sorted(name for name in init["tools"] if name.startswith("mcp__")),
        "skills": sorted(name for name in init["skills"] if name.startswith(mine)),
        "commands": sorted(name for name in init["slash_commands"] if name.startswith(mine)),
        "agents": sorted(name for name in init["agents"] if name in ("reviewer", "kit:tester")),
        "plugins": [plugin["name"] for plugin in init["plugins"]],
        "plugin_errors": [error["plugin"] for error in init["plugin_errors"]],
        "model": init["model"],
    }


def check(here: Stage, frames: list[dict], kind: str) -> None:
    log = Path(here.work.parent / "hooks.log")
    seen = {
        "events": [said for said in map(line, frames) if said is not None],
        "hooks": log.read_text().splitlines(),
        "hooks of the plugin": Path(f"{log}.kit").read_text().splitlines(),
        "hooks that are tools": Path(f"{log}.tool").read_text().splitlines(),
        "hooks of the agent and the skill": Path(f"{log}.own").read_text().splitlines(),
    }
    assert seen == EXPECTED[kind]
    bodies = here.bodies()
    assert "Everything here is small on purpose." in json.dumps(bodies[0]["messages"])
    assert "Look at README.md" in json.dumps(bodies[0]["messages"])
    # A rule for everything is there from the start, one for some files with the first of them.
    assert "Short words are better" in json.dumps(bodies[0]["messages"])
    assert "Headings in Markdown" in json.dumps(bodies[-1]["messages"])
    assert "Greet Ann kindly." in json.dumps(bodies[2]["messages"])
    child = bodies[4]
    assert "You review" in json.dumps(child["system"]) and [tool["name"] for tool in child["tools"]] == ["Grep", "Read"]


def test_the_sample_runs_headless(sample: Callable) -> None:
    here, env = sample(NOTES)
    words = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
    process = subprocess.Popen(
        [os.environ["PELTON_BIN"], *words], cwd=here.work, env={**os.environ, **here.env(**env)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    frames: list[dict] = []

    def say(said: dict) -> None:
        assert process.stdin is not None
        process.stdin.write(json.dumps(said) + "\n")
        process.stdin.flush()

    def until(holds: Callable[[dict], bool]) -> dict:
        assert process.stdout is not None
        for read in process.stdout:
            frame = json.loads(read)
            frames.append(frame)
            if holds(frame):
                return frame
        raise AssertionError(process.stderr.read() if process.stderr else "")

    def prompt(words: str) -> None:
        say({"type": "user", "message": {"role": "user", "content": words}})
        until(lambda frame: frame["type"] == "result")

    prompt("/look README.md")
    Path(env["SAMPLE_GATE"]).touch()
    while True:
        say({"type": "control_request", "request_id": "1", "request": {"subtype": "mcp_status"}})
        answer = until(lambda frame: frame["type"] == "control_response")
        servers = answer["response"]["response"]["mcpServers"]
        if all(server["status"] != "pending" for server in servers):
            break
    prompt("Do everything.")
    process.stdin.close()
    assert process.wait(30) == 0
    check(here, frames, "headless")


@tool("note", "Takes a note.", {"text": str})
async def note(said: dict) -> dict:
    return {"content": [{"type": "text", "text": f"inside noted {said['text']}"}]}


def test_the_sample_runs_through_the_sdk(sample: Callable) -> None:
    here, env = sample([*NOTES, INSIDE])
    servers = {"inside": create_sdk_mcp_server("inside", tools=[note])}
    sources = ["user", "project", "local"]

    async def talk() -> list[dict]:
        frames: list[dict] = []
        async with here.client(env=env, mcp_servers=servers, setting_sources=sources) as client:
            for prompt in ("/look README.md", "Do everything."):
                await client.query(prompt)
                frames += [as_frame(message) async for message in client.receive_response()]
                Path(env["SAMPLE_GATE"]).touch()
                while any(one["status"] == "pending" for one in (await client.get_mcp_status())["mcpServers"]):
                    await asyncio.sleep(STATUS_WAIT_SECONDS)
        return frames

    check(here, asyncio.run(talk()), "sdk")


def as_frame(message: object) -> dict:
    """A message of the SDK as it was on the wire, as far as it is compared."""
    if isinstance(message, SystemMessage):
        return {"type": "system", **message.data}
    if isinstance(message, ResultMessage):
        return {"type": "result", "subtype": message.subtype, "result": message.result}
    if not isinstance(message, AssistantMessage | UserMessage):
        return {"type": "other"}
    kind = "assistant" if isinstance(message, AssistantMessage) else "user"
    content = message.content if isinstance(message.content, str) else [as_block(block) for block in message.content]
    return {"type": kind, "parent_tool_use_id": message.parent_tool_use_id, "message": {"content": content}}


def as_block(block: object) -> dict:
    kinds = {"TextBlock": "text", "ToolUseBlock": "tool_use", "ToolResultBlock": "tool_result"}
    return {"type": kinds.get(type(block).__name__, type(block).__name__), **vars(block)}
