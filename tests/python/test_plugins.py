"""Plugins, as programs name them: folders that bring skills, agents, hooks and servers."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

from agent_stage import Stage, call, plain, result, results, system, text

SERVER = str(Path(__file__).with_name("weather_server.py"))


def test_a_plugin_brings_its_skills_agents_and_servers(stage: Callable[..., Stage]) -> None:
    here = stage(text("One."), call("mcp__plugin_kit_weather__forecast", {"city": "Bern"}), text("Mild."))
    root = here.work.parent / "kit"
    (root / "skills/brew").mkdir(parents=True)
    (root / "skills/brew/SKILL.md").write_text("---\ndescription: Makes tea.\n---\nBoil it.")
    (root / "agents").mkdir()
    (root / "agents/r.md").write_text("---\nname: reviewer\ndescription: Reviews.\n---\nYou review.")
    entry = {"command": sys.executable, "args": [SERVER, "stdio"], "env": {"MOOD": "${CLAUDE_PLUGIN_ROOT}"}}
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": {"weather": entry}}))
    plugins = [{"type": "local", "path": str(root)}, {"type": "local", "path": str(root / "none")}]

    async def talk() -> tuple[list, list]:
        allowed = ["mcp__plugin_kit_weather"]
        async with here.client(plugins=plugins, allowed_tools=allowed) as client:
            await client.query("Hello.")
            first = [message async for message in client.receive_response()]
            # Whatever was not named for the run comes when it comes.
            while (await client.get_mcp_status())["mcpServers"][0]["status"] == "pending":
                await asyncio.sleep(0.05)
            await client.query("And the weather?")
            return first, [message async for message in client.receive_response()]

    first, second = asyncio.run(talk())
    init = system(first, "init")[0]
    assert init["plugins"] == [{"name": "kit", "path": str(root)}]
    assert [error["plugin"] for error in init["plugin_errors"]] == ["inline[1]"]
    assert "kit:brew" in init["skills"] and "kit:reviewer" in init["agents"]
    assert [server["name"] for server in init["mcp_servers"]] == ["plugin:kit:weather"]
    assert f"Bern: 290 K, {root}" in plain(results(second)[0].content)
    assert result(second).subtype == "success"
    one, _, three = here.bodies()
    assert "kit:brew" in json.dumps(one["messages"])
    assert "290 K" in json.dumps(three["messages"][-1])
