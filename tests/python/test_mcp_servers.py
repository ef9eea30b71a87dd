"""Servers of tools outside of the client, real ones, each way they can be reached."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from agent_stage import Stage, call, plain, result, results, system, text
from claude_agent_sdk import ResultError
from mcp import ClientSession, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult

SERVER = str(Path(__file__).with_name("weather_server.py"))
START_SECONDS_MAX = 30
FORECAST = call("mcp__weather__forecast", {"city": "Bern"})
ALLOWED = ["mcp__weather"]


def ask(stage: Stage, **more: object) -> list:
    return asyncio.run(stage.query(**more))


def program(**more: object) -> dict:
    return {"command": sys.executable, "args": [SERVER, "stdio"], **more}


@pytest.fixture
def serving() -> Iterator[Callable[[str], int]]:
    """A function from a way to be reached to the port of a server that is reached so."""
    running: list[subprocess.Popen[bytes]] = []

    def start(kind: str, port: int = 0) -> int:
        if port:
            end(running)
        else:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
        running.append(subprocess.Popen([sys.executable, SERVER, kind, str(port)], stderr=subprocess.DEVNULL))
        give_up = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return port
            except OSError:
                assert time.monotonic() < give_up, f"the {kind} server does not listen"
                time.sleep(0.05)

    yield start
    end(running)


def end(running: list[subprocess.Popen[bytes]]) -> None:
    for process in running:
        process.kill()
        process.wait()


def check(here: Stage, messages: list, answer: str) -> None:
    """The tool was offered, called and answered."""
    init = system(messages, "init")[0]
    # Nobody waits for a server to state what there is; the model does.
    server = init["mcp_servers"][0]
    assert (server["name"], server["status"] in ("connected", "pending")) == ("weather", True), server
    assert ("mcp__weather__forecast" in init["tools"]) == (server["status"] == "connected")
    first, second = here.bodies()
    assert "Temperatures are in kelvin." in json.dumps(first["system"])
    names = [tool["name"] for tool in first["tools"]]
    assert "mcp__weather__forecast" in names or "ToolSearch" in names
    answered = second["messages"][-1]["content"][0]
    assert answered["type"] == "tool_result" and answer in plain(answered["content"])
    assert answer in plain(results(messages)[0].content)
    assert result(messages).subtype == "success"


def test_a_program_is_started_with_what_its_entry_adds(stage: Callable[..., Stage]) -> None:
    here = stage(FORECAST, text("Mild."))
    servers = {"weather": program(env={"MOOD": "${MOOD_OF_THE_DAY:-calm}"})}
    messages = ask(here, mcp_servers=servers, allowed_tools=ALLOWED)
    check(here, messages, "Bern: 290 K, calm")


@pytest.mark.parametrize("kind", ["http", "sse"])
def test_an_address_is_reached_the_new_way_and_the_old(
    stage: Callable[..., Stage], serving: Callable[[str], int], kind: str
) -> None:
    here = stage(FORECAST, text("Mild."))
    way = {"http": ("streamable-http", "mcp"), "sse": ("sse", "sse")}[kind]
    entry = {"type": kind, "url": f"http://127.0.0.1:{serving(way[0])}/{way[1]}"}
    messages = ask(here, mcp_servers={"weather": entry}, allowed_tools=ALLOWED)
    check(here, messages, "Bern: 290 K")


def test_an_error_of_a_tool_is_the_models_to_read(stage: Callable[..., Stage]) -> None:
    here = stage(call("mcp__weather__broken", {}), text("Frozen."))
    messages = ask(here, mcp_servers={"weather": program()}, allowed_tools=ALLOWED)
    answered = results(messages)[0]
    assert answered.is_error and "Error executing tool broken" in plain(answered.content)
    assert here.bodies()[1]["messages"][-1]["content"][0]["is_error"] is True


def test_without_a_rule_nobody_calls_it(stage: Callable[..., Stage]) -> None:
    here = stage(FORECAST, text("Then not."))
    messages = ask(here, mcp_servers={"weather": program()})
    assert results(messages)[0].is_error
    denied = result(messages).permission_denials
    assert denied and denied[0]["tool_name"] == "mcp__weather__forecast"
    assert "290 K" not in json.dumps(here.bodies()[1])


def test_a_project_brings_its_servers_and_strict_leaves_them_out(stage: Callable[..., Stage]) -> None:
    here = stage(text("One."), text("Two."), text("Three."))
    (here.work / ".mcp.json").write_text(json.dumps({"mcpServers": {"weather": program()}}))

    def seen(**more: object) -> list[str]:
        return [server["name"] for server in system(ask(here, **more), "init")[0]["mcp_servers"]]

    assert seen() == ["weather"]
    assert seen(strict_mcp_config=True) == []
    assert seen(setting_sources=["user"]) == []
    first, *others = [json.dumps(body["tools"]) for body in here.bodies()]
    assert len(others) == 2 and not any("mcp__weather" in tools for tools in others), first


def test_a_server_that_is_not_there_is_told_and_spares_the_others(stage: Callable[..., Stage]) -> None:
    here = stage(FORECAST, text("Mild."))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/mcp"
        gone = {"type": "http", "url": address}
        servers = {"weather": program(), "gone": gone, "absent": {"command": "no-such-program-at-all"}}
        messages = ask(here, mcp_servers=servers, allowed_tools=ALLOWED)
    status = {server["name"]: server["status"] for server in system(messages, "init")[0]["mcp_servers"]}
    assert status["absent"] == "failed"
    assert status["weather"] in ("connected", "pending") and status["gone"] in ("failed", "pending"), status
    assert "Bern: 290 K" in plain(results(messages)[0].content)
    assert len(here.bodies()) == 2


def test_the_client_sees_reconnects_and_switches_off(stage: Callable[..., Stage]) -> None:
    here = stage(text("One."), FORECAST, text("Gone."))

    async def talk() -> tuple[dict, dict, list]:
        async with here.client(mcp_servers={"weather": program()}, allowed_tools=ALLOWED) as client:
            await client.query("Hello.")
            first = [message async for message in client.receive_response()]
            assert result(first).subtype == "success"
            before = await client.get_mcp_status()
            await client.reconnect_mcp_server("weather")
            await client.toggle_mcp_server("weather", False)
            after = await client.get_mcp_status()
            await client.query("And now?")
            return before, after, [message async for message in client.receive_response()]

    before, after, messages = asyncio.run(talk())
    server = before["mcpServers"][0]
    assert (server["name"], server["status"], server["scope"]) == ("weather", "connected", "dynamic")
    assert (server["serverInfo"]["name"], server["source"]) == ("weather", "dynamic")
    assert [tool["name"] for tool in server["tools"]] == ["forecast", "broken", "may"]
    assert after["mcpServers"][0]["status"] == "disabled"
    assert results(messages)[0].is_error
    assert "290 K" not in json.dumps(here.bodies()[2])


@pytest.mark.parametrize("kind", ["streamable-http", "sse"])
def test_an_address_that_went_away_is_found_again(
    stage: Callable[..., Stage], serving: Callable[..., int], kind: str
) -> None:
    here = stage(FORECAST, text("One."), FORECAST, text("Two."))
    port = serving(kind)
    entry = {"type": "sse", "url": f"http://127.0.0.1:{port}/sse"}
    if kind != "sse":
        entry = {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}

    async def talk() -> list:
        async with here.client(mcp_servers={"weather": entry}, allowed_tools=ALLOWED) as client:
            await client.query("Hello.")
            assert result([message async for message in client.receive_response()]).subtype == "success"
            serving(kind, port)
            give_up = time.monotonic() + START_SECONDS_MAX
            while (await client.get_mcp_status())["mcpServers"][0]["status"] != "connected":
                assert time.monotonic() < give_up, "nobody looked for it again"
                await asyncio.sleep(0.1)
            await client.query("And now?")
            return [message async for message in client.receive_response()]

    answered = results(asyncio.run(talk()))[0]
    assert not answered.is_error and "Bern: 290 K" in plain(answered.content)
    assert "Bern: 290 K" in json.dumps(here.bodies()[3]["messages"][-1])


def test_what_a_server_has_to_read_is_listed_read_and_mentioned(stage: Callable[..., Stage]) -> None:
    uri = "weather://records"
    calls = [{"tool": "ListMcpResourcesTool", "input": {"server": "weather"}}]
    calls.append({"tool": "ReadMcpResourceTool", "input": {"server": "weather", "uri": uri}})
    here = stage({"reply": calls}, text("Cold."))
    messages = asyncio.run(here.query(f"How cold was it? See @weather:{uri}.", mcp_servers={"weather": program()}))
    listed, read = results(messages)
    assert json.loads(plain(listed.content))[0]["uri"] == uri
    assert plain(read.content) == "coldest: 184 K"
    first, _ = here.bodies()
    assert "coldest: 184 K" in json.dumps(first["messages"])


def test_a_prompt_of_a_server_is_a_command(stage: Callable[..., Stage]) -> None:
    here = stage(text("A coat."))
    prompt = "/mcp__weather__advise Bern very briefly"
    messages = asyncio.run(here.query(prompt, mcp_servers={"weather": program()}))
    init = system(messages, "init")[0]
    assert ("mcp__weather__advise" in init["slash_commands"]) == (init["mcp_servers"][0]["status"] == "connected")
    assert "What should I wear in Bern? Answer very briefly." in json.dumps(here.bodies()[0]["messages"])
    assert result(messages).result == "A coat."
    with pytest.raises(ResultError, match="city is missing"):
        asyncio.run(here.query("/mcp__weather__advise", mcp_servers={"weather": program()}))
    assert len(here.bodies()) == 1


async def served(here: Stage, use: Callable[[ClientSession], Awaitable[None]], *flags: str) -> None:
    """Talks with `pelton mcp serve` through the official client."""
    env = {"PATH": os.environ["PATH"], "HOME": str(here.home), "CLAUDE_CONFIG_DIR": str(here.config)}
    command = os.environ["PELTON_BIN"]
    program = StdioServerParameters(command=command, args=["mcp", "serve", *flags], env=env, cwd=str(here.work))
    async with stdio_client(program) as (reads, writes), ClientSession(reads, writes) as session:
        told = await session.initialize()
        assert told.server_info.name == "pelton"
        await use(session)
    assert here.bodies() == [], "no model was asked"


def words_of(answered: CallToolResult) -> str:
    return "\n".join(block.text for block in answered.content)


def test_our_tools_are_served_and_rules_hold(stage: Callable[..., Stage]) -> None:
    here = stage()
    (here.work / "notes.txt").write_text("buy milk\n")

    async def use(session: ClientSession) -> None:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert set(tools) == {"Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "TaskOutput", "TaskStop", "Write"}
        assert tools["Read"].input_schema["required"] == ["file_path"]
        assert tools["Read"].annotations.read_only_hint and not tools["Bash"].annotations.read_only_hint
        read = await session.call_tool("Read", {"file_path": str(here.work / "notes.txt")})
        assert not read.is_error and "buy milk" in words_of(read)
        made = await session.call_tool("Bash", {"command": "touch made"})
        assert not made.is_error and (here.work / "made").exists()
        asked = await session.call_tool("Bash", {"command": "rm notes.txt"})
        assert asked.is_error and "permission" in words_of(asked).lower(), words_of(asked)
        denied = await session.call_tool("Bash", {"command": "touch secret"})
        assert denied.is_error and not (here.work / "secret").exists()
        assert (here.work / "notes.txt").exists()
        odd = await session.call_tool("Read", {"path": 3})
        assert odd.is_error
        with pytest.raises(MCPError, match="there is no tool 'Agent'"):
            await session.call_tool("Agent", {})

    flags = ["--allowedTools", "Bash(touch *)", "--disallowedTools", "Bash(touch secret)"]
    asyncio.run(served(here, use, *flags))


def test_a_call_of_our_tools_is_taken_back(stage: Callable[..., Stage]) -> None:
    here = stage()

    async def use(session: ClientSession) -> None:
        with pytest.raises(MCPError):
            arguments = {"command": "echo $$ > pid; sleep 60"}
            await session.call_tool("Bash", arguments, read_timeout_seconds=3)
        after = await session.call_tool("Bash", {"command": "echo next"})
        assert "next" in words_of(after), "the one behind it is made"
        process = (here.work / "pid").read_text().strip()
        give_up = time.monotonic() + START_SECONDS_MAX
        while Path(f"/proc/{process}").exists():
            assert time.monotonic() < give_up, "what was taken back still runs"
            await asyncio.sleep(0.05)

    asyncio.run(served(here, use, "--allowedTools", "Bash"))


def test_a_tool_of_a_server_decides_in_a_run_of_one_prompt(stage):
    here = stage(call("Bash", {"command": "touch allowed"}), call("Bash", {"command": "touch other"}), text("Done."))
    servers = json.dumps({"mcpServers": {"weather": program()}})
    command = [os.environ["PELTON_BIN"], "-p", "Go.", "--output-format", "json", "--mcp-config", servers]
    command += ["--permission-prompt-tool", "mcp__weather__may"]
    env = {**os.environ, **here.env()}
    ran = subprocess.run(command, cwd=here.work, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert ran.returncode == 0, ran.stderr
    denied = json.loads(ran.stdout)["permission_denials"]
    assert [denial["tool_input"]["command"] for denial in denied] == ["touch other"]
    assert (here.work / "allowed").exists() and not (here.work / "other").exists()
    assert "would leave a mark" in json.dumps(here.bodies()[2]["messages"])
