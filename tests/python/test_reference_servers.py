"""Servers of tools that others wrote: the published reference ones, each through the SDK and by the command line."""

from __future__ import annotations

import asyncio
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agent_stage import Stage, call, plain, result, results, system, text

RUN_SECONDS_MAX = 90


def installed(name: str, *args: str) -> dict:
    """A server that stands beside the interpreter."""
    return {"command": str(Path(sys.executable).with_name(name)), "args": list(args)}


@pytest.fixture
def page() -> Iterator[str]:
    """The address of a page."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<html><body><p>Water turns the wheel.</p></body></html>")

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


def by_command_line(here: Stage, servers: dict, allowed: str) -> None:
    command = [os.environ["PELTON_BIN"], "-p", "Go.", "--allowedTools", allowed]
    command += ["--strict-mcp-config", "--mcp-config", json.dumps({"mcpServers": servers})]
    env = {**os.environ, **here.env()}
    ran = subprocess.run(command, cwd=here.work, env=env, capture_output=True, text=True, timeout=RUN_SECONDS_MAX)
    assert (ran.returncode, ran.stdout.strip()) == (0, "Done."), ran.stderr


def check(here: Stage, name: str, server: dict, tool: str, expected: str) -> None:
    """The tool was called in either way, and answered."""
    messages = asyncio.run(here.query(mcp_servers={name: server}, allowed_tools=[f"mcp__{name}"]))
    init = system(messages, "init")[0]
    stated = init["mcp_servers"][0]
    assert (stated["name"], stated["status"] in ("connected", "pending")) == (name, True), stated
    assert f"mcp__{name}__{tool}" in [each["name"] for each in here.bodies()[0]["tools"]]
    answered = results(messages)[0]
    assert not answered.is_error and expected in plain(answered.content), plain(answered.content)
    assert result(messages).result == "Done."
    by_command_line(here, {name: server}, f"mcp__{name}")
    bodies = here.bodies()
    assert len(bodies) == 4
    for body in (bodies[1], bodies[3]):
        assert expected in plain(body["messages"][-1]["content"][0]["content"])


def script(name: str, tool: str, arguments: dict) -> list[dict]:
    return [call(f"mcp__{name}__{tool}", arguments), text("Done.")] * 2


def test_the_time(stage: Callable[..., Stage]) -> None:
    arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    here = stage(*script("time", "convert_time", arguments))
    check(here, "time", installed("mcp-server-time", "--local-timezone", "UTC"), "convert_time", "T21:00:00+09:00")


def test_a_repository(stage: Callable[..., Stage]) -> None:
    here = stage(*script("git", "git_log", {"repo_path": "."}))
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", "init", "-q"], cwd=here.work, check=True)
    commit = ["git", *who, "commit", "-q", "--allow-empty", "-m", "Turn the wheel"]
    subprocess.run(commit, cwd=here.work, check=True)
    check(here, "git", installed("mcp-server-git", "--repository", str(here.work)), "git_log", "Turn the wheel")


def test_a_page(stage: Callable[..., Stage], page: str) -> None:
    here = stage(*script("fetch", "fetch", {"url": page}))
    server = installed("mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips")
    check(here, "fetch", server, "fetch", "Water turns the wheel.")
