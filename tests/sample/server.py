"""A server of one tool, with nothing but the standard library: `stdio`, or `serve`, which is reached by streamable HTTP at
`/mcp` and in the old way at `/sse`, and prints its port. Nobody is greeted before the file `SAMPLE_GATE` is there."""

from __future__ import annotations

import json
import os
import queue
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def answer(message: dict, name: str) -> dict | None:
    """What is said to a message; nothing to one that wants no answer."""
    method, said = message.get("method"), message.get("params") or {}
    if "id" not in message or method is None:
        return None
    if method == "initialize":
        while not os.path.exists(os.environ.get("SAMPLE_GATE", "/")):
            time.sleep(0.01)
        result: dict = {
            "protocolVersion": said.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": name, "version": "1"},
        }
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        result = {"tools": [{"name": "note", "description": "Takes a note.", "inputSchema": schema}]}
    elif method == "tools/call":
        if said["arguments"]["text"].startswith("hook: "):
            with open(os.environ["SAMPLE_LOG"] + ".tool", "a") as log:
                log.write(said["arguments"]["text"] + "\n")
        result = {"content": [{"type": "text", "text": f"{name} noted {said['arguments']['text']}"}]}
    elif method == "ping":
        result = {}
    else:
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no such method"}}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def talk() -> None:
    for line in sys.stdin:
        said = answer(json.loads(line), os.environ.get("SAMPLE_NAME", "stdio"))
        if said is not None:
            print(json.dumps(said), flush=True)


class Door(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    waiting: dict[str, queue.Queue] = {}

    def log_message(self, *_: object) -> None:
        pass

    def reply(self, code: int, body: bytes = b"", kind: str = "application/json") -> None:
        self.send_response(code)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        if self.path != "/sse":
            return self.reply(405)
        session = str(len(self.waiting) + 1)
        mine = self.waiting.setdefault(session, queue.Queue())
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(f"event: endpoint\ndata: /post?{session}\n\n".encode())
        self.wfile.flush()
        while True:
            try:
                said = mine.get(timeout=5)
                self.wfile.write(f"event: message\ndata: {said}\n\n".encode())
            except queue.Empty:
                self.wfile.write(b": still here\n\n")
            self.wfile.flush()

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/mcp":
            said = answer(message, "far")
            return self.reply(202) if said is None else self.reply(200, json.dumps(said).encode())
        said = answer(message, "old")
        if said is not None:
            self.waiting[self.path.partition("?")[2]].put(json.dumps(said))
        return self.reply(202)

    def do_DELETE(self) -> None:
        self.reply(200)


class House(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Whoever leaves needs no farewell."""


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        talk()
    else:
        house = House(("127.0.0.1", 0), Door)
        print(house.server_address[1], flush=True)
        house.serve_forever()
