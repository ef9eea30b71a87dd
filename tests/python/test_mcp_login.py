"""Logins at servers of tools, as they are and as the first version of the protocol had them: with a code, renewed by one
process for all, and taken back."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator

import pytest
from agent_stage import Stage, call, plain, results, system, text
from guarded_server import Guarded

RUN_SECONDS_MAX = 60
SECRET = call("mcp__guarded__secret", {})
ALLOWED = ["mcp__guarded"]


@pytest.fixture(params=["http", "sse"])
def guarded(request: pytest.FixtureRequest) -> Iterator[Guarded]:
    server = Guarded(is_older=request.param == "sse")
    yield server
    server.close()


def start(here: Stage, *words: str) -> subprocess.Popen[str]:
    command = [os.environ["PELTON_BIN"], "mcp", *words]
    env = {"PATH": os.environ["PATH"], "HOME": str(here.home), "CLAUDE_CONFIG_DIR": str(here.config)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    return subprocess.Popen(command, cwd=here.work, env=env, text=True, **pipes)


def run(here: Stage, *words: str, code: int = 0) -> str:
    started = start(here, *words)
    out, err = started.communicate(timeout=RUN_SECONDS_MAX)
    assert started.returncode == code, out + err
    return out + err


def log_in(here: Stage) -> None:
    started = start(here, "login", "guarded", "--no-browser")
    assert started.stdout is not None
    assert started.stdout.readline() == "Log in here:\n"
    address = started.stdout.readline().strip()
    # Somebody else who comes by is sent away, and changes nothing.
    back = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(address).query))["redirect_uri"]
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(back.replace("/callback", "/favicon.ico"))
    with urllib.request.urlopen(address) as page:
        assert b"You can close this page" in page.read()
    out, err = started.communicate(timeout=RUN_SECONDS_MAX)
    assert started.returncode == 0 and "Logged in" in out, out + err


def logged_in(stage: Callable[..., Stage], guarded: Guarded, *steps: dict) -> Stage:
    here = stage(*steps)
    run(here, "add", "-s", "user", "--transport", guarded.kind, "guarded", guarded.url)
    assert "needs-auth" in run(here, "test", code=1)
    log_in(here)
    return here


def test_somebody_logs_in_and_out(stage: Callable[..., Stage], guarded: Guarded) -> None:
    here = logged_in(stage, guarded)
    assert guarded.log == ["register", "authorize", "authorization_code"]
    kept = here.config / ".mcp-credentials.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert run(here, "test") == "guarded: connected, tools: secret\n"
    run(here, "logout", "guarded")
    assert "accessToken" not in kept.read_text()
    assert "needs-auth" in run(here, "test", code=1)
    assert here.bodies() == []


def test_a_login_is_renewed_in_the_middle_of_a_session_and_taken_back(
    stage: Callable[..., Stage], guarded: Guarded
) -> None:
    here = logged_in(stage, guarded, SECRET, text("One."), SECRET, text("Two."), SECRET, text("Three."))

    async def talk() -> tuple[list, str]:
        answers = []
        async with here.client(allowed_tools=ALLOWED) as client:
            while (await client.get_mcp_status())["mcpServers"][0]["status"] == "pending":
                await asyncio.sleep(0.05)
            for happens in (lambda: None, guarded.expire, guarded.revoke):
                happens()
                await client.query("Go.")
                answers += results([message async for message in client.receive_response()])
            return answers, (await client.get_mcp_status())["mcpServers"][0]["status"]

    (first, second, third), status = asyncio.run(talk())
    assert not first.is_error and plain(first.content) == "the cake is real"
    assert not second.is_error and plain(second.content) == "the cake is real"
    assert third.is_error and "log in" in plain(third.content)
    assert status == "needs-auth"
    assert guarded.log.count("refresh_token") == 2 and guarded.log.count("called") == 2
    assert len(here.bodies()) == 6
    assert "accessToken" not in (here.config / ".mcp-credentials.json").read_text(), "what was taken back is forgotten"
    log_in(here)
    assert "connected" in run(here, "test")


def test_of_many_processes_one_renews(stage: Callable[..., Stage], guarded: Guarded) -> None:
    here = logged_in(stage, guarded)
    guarded.expire()
    guarded.renewal_seconds = 0.3
    many = [start(here, "test") for _ in range(6)]
    said = [each.communicate(timeout=RUN_SECONDS_MAX) for each in many]
    assert [out for out, _ in said] == ["guarded: connected, tools: secret\n"] * 6, said
    assert guarded.log.count("refresh_token") == 1 and "stolen" not in guarded.log
    assert here.bodies() == []


def test_a_token_goes_to_the_address_it_is_for_alone(stage: Callable[..., Stage], guarded: Guarded) -> None:
    here = logged_in(stage, guarded, text("Hi."))
    other = Guarded(guarded.is_older)
    other.access = guarded.access
    entry = {"guarded": {"type": guarded.kind, "url": other.url}}
    messages = asyncio.run(here.query(mcp_servers=entry, strict_mcp_config=True))
    assert system(messages, "init")[0]["mcp_servers"][0]["status"] == "needs-auth"
    own = {"guarded": {"type": guarded.kind, "url": guarded.url, "headers": {"Authorization": "Bearer wrong"}}}
    assert "Authorization header" in run_login_of(here, own)
    other.close()
    assert len(here.bodies()) == 1


def run_login_of(here: Stage, servers: dict) -> str:
    (here.work / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return run(here, "login", "guarded", "--no-browser", code=1)
