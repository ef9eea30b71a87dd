"""A place for one program that drives Pelton through the official agent SDK, with a scripted model behind it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    Message,
    ResultMessage,
    SystemMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    query,
)

LISTENING = "listening on "
STOP_SECONDS_MAX = 5


def text(words: str, **more: object) -> dict:
    """The model says this."""
    return {"reply": [{"text": words}], **more}


def call(tool: str, arguments: dict, **more: object) -> dict:
    """The model calls a tool."""
    return {"reply": [{"tool": tool, "input": arguments}], **more}


class Stage:
    def __init__(self, folder: Path, steps: tuple[dict, ...], settings: dict) -> None:
        self.work = folder / "work"
        self.home = folder / "home"
        self.config = folder / "config"
        for place in (self.work, self.home, self.config):
            place.mkdir()
        script = folder / "script.json"
        script.write_text(json.dumps({**settings, "steps": list(steps)}))
        self._record = folder / "record.jsonl"
        command = [os.environ["PELTON_BIN"], "mock", str(script), "--port", "0", "--record", str(self._record)]
        self._model = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._model.stdout is not None
        first = self._model.stdout.readline().strip()
        assert first.startswith(LISTENING), f"first line of `pelton mock`: {first!r}"
        self.address = first.removeprefix(LISTENING)
        self.stderr: list[str] = []
        self.was_compared = False

    def close(self) -> None:
        self._model.terminate()
        self._model.wait(STOP_SECONDS_MAX)

    def env(self, **more: str) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": self.address,
            "ANTHROPIC_API_KEY": "sk-test",
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.config),
            **more,
        }

    def options(self, env: dict[str, str] | None = None, **more: Any) -> ClaudeAgentOptions:
        more.setdefault("cwd", str(self.work))
        more.setdefault("stderr", self.stderr.append)
        return ClaudeAgentOptions(cli_path=os.environ["PELTON_BIN"], env=self.env(**(env or {})), **more)

    async def query(self, prompt: str | AsyncIterator[dict] = "Go.", **more: Any) -> list[Message]:
        """Everything a one-shot query delivers."""
        return [message async for message in query(prompt=prompt, options=self.options(**more))]

    def client(self, **more: Any) -> ClaudeSDKClient:
        return ClaudeSDKClient(options=self.options(**more))

    def requests(self) -> list[dict]:
        """What the model was asked, oldest first."""
        self.was_compared = True
        lines = self._record.read_text().splitlines() if self._record.exists() else []
        records = [json.loads(line) for line in lines]
        return [entry for entry in records if entry["kind"] == "request" and entry["path"] == "/v1/messages"]

    def bodies(self) -> list[dict]:
        return [request["body"] for request in self.requests()]


def of(messages: list[Message], kind: type) -> list:
    return [message for message in messages if isinstance(message, kind)]


def result(messages: list[Message]) -> ResultMessage:
    """The only result, which comes last."""
    results = of(messages, ResultMessage)
    assert len(results) == 1, results
    return results[0]


def words(messages: list[Message]) -> list[str]:
    """What the model said."""
    said = of(messages, AssistantMessage)
    return [block.text for message in said for block in message.content if isinstance(block, TextBlock)]


def calls(messages: list[Message]) -> list[ToolUseBlock]:
    said = of(messages, AssistantMessage)
    return [block for message in said for block in message.content if isinstance(block, ToolUseBlock)]


def results(messages: list[Message]) -> list[ToolResultBlock]:
    said = [message for message in of(messages, UserMessage) if isinstance(message.content, list)]
    return [block for message in said for block in message.content if isinstance(block, ToolResultBlock)]


def system(messages: list[Message], subtype: str) -> list[dict]:
    return [message.data for message in of(messages, SystemMessage) if message.subtype == subtype]


def last_texts(body: dict) -> list[str]:
    """The texts of the newest message the model was sent."""
    content = body["messages"][-1]["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [block["text"] for block in blocks if block["type"] == "text"]


def answers(body: dict) -> list[dict]:
    """The results of tools in the newest message the model was sent."""
    return [block for block in body["messages"][-1]["content"] if block["type"] == "tool_result"]


def plain(content: object) -> str:
    """A result's content as one text."""
    if isinstance(content, str):
        return content
    assert isinstance(content, list)
    return "\n".join(block.get("text", "") for block in content)
