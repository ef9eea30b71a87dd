"""Starts `pelton mock` with a script and hands tests an official client that talks to it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import anthropic
import pytest
from agent_stage import Stage

LISTENING = "listening on "
STOP_SECONDS_MAX = 5


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """A function from a script to the address of a model that plays it."""
    running: list[subprocess.Popen[str]] = []

    def start(*steps: dict, **settings: object) -> str:
        script = tmp_path / f"script-{len(running)}.json"
        script.write_text(json.dumps({**settings, "steps": list(steps)}))
        process = subprocess.Popen(
            [os.environ["PELTON_BIN"], "mock", str(script), "--port", "0"],
            stdout=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        assert process.stdout is not None
        first = process.stdout.readline().strip()
        assert first.startswith(LISTENING), f"first line of `pelton mock`: {first!r}"
        return first.removeprefix(LISTENING)

    yield start
    for process in running:
        process.terminate()
        process.wait(STOP_SECONDS_MAX)


@pytest.fixture
def client(scripted: Callable[..., str]) -> Callable[..., anthropic.Anthropic]:
    """A function from a script to a client. It does not retry unless told to."""

    def connect(*steps: dict, retries: int = 0, **settings: object) -> anthropic.Anthropic:
        return anthropic.Anthropic(base_url=scripted(*steps, **settings), api_key="test", max_retries=retries)

    return connect


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    """A function from a script to a place where an agent can be driven by the agent SDK."""
    stages: list[Stage] = []

    def start(*steps: dict, **settings: object) -> Stage:
        folder = tmp_path / f"stage-{len(stages)}"
        folder.mkdir()
        stages.append(Stage(folder, steps, settings))
        return stages[-1]

    yield start
    for each in stages:
        each.close()
    # What the SDK delivers is one half of a scenario.
    assert any(each.was_compared for each in stages), "nobody looked at what the model was asked"
