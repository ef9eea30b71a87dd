"""A server of tools, made with the official `mcp` package as its users make them. How it is reached: `stdio`, or `sse` or
`streamable-http` with a port."""

from __future__ import annotations

import json
import os
import sys

from mcp.server import MCPServer

server = MCPServer("weather", instructions="Temperatures are in kelvin.")


@server.tool()
def forecast(city: str) -> str:
    """Tells tomorrow's weather."""
    return f"{city}: 290 K, {os.environ.get('MOOD', 'no mood')}"


@server.tool()
def broken() -> str:
    """Always fails."""
    raise ValueError("the instruments are frozen")


@server.tool()
def may(tool_name: str, input: dict, tool_use_id: str = "") -> str:
    """Decides what runs: whatever touches a file that is allowed."""
    if "allowed" in json.dumps(input):
        return json.dumps({"behavior": "allow", "updatedInput": input})
    return json.dumps({"behavior": "deny", "message": f"{tool_name} would leave a mark"})


@server.resource("weather://records", mime_type="text/plain")
def records() -> str:
    """The extremes."""
    return "coldest: 184 K"


@server.prompt()
def advise(city: str, mood: str = "calmly") -> str:
    """What to wear."""
    return f"What should I wear in {city}? Answer {mood}."


if __name__ == "__main__":
    kind = sys.argv[1]
    if kind == "stdio":
        server.run("stdio")
    else:
        server.run(kind, host="127.0.0.1", port=int(sys.argv[2]))
