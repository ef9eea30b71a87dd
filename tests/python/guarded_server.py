"""A server of tools that knows nobody without a token, and the one who gives tokens for it, on one port. Tokens are rotated:
a refresh token is good once, and whoever shows an old one loses the login."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import queue
import secrets
import threading
import time
import urllib.parse
from typing import Any

LOOK_SECONDS = 0.05


class Guarded:
    def __init__(self, is_older: bool = False) -> None:
        outer = self
        # As the first version of the protocol had it: everything comes through one stream.
        self.is_older = is_older
        self.kind = "sse" if is_older else "http"
        self.streams: dict[str, queue.Queue[dict]] = {}
        self.is_closed = False
        self.access: set[str] = set()
        self.refresh: set[str] = set()
        self.used: set[str] = set()
        self.codes: dict[str, dict[str, str]] = {}
        self.clients: dict[str, dict[str, Any]] = {}
        self.log: list[str] = []
        self.renewal_seconds = 0.0
        self._lock = threading.Lock()

        class Door(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.get(self)

            def do_POST(self) -> None:
                outer.post(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Door)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self.url = f"{self.address}/mcp"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.is_closed = True
        self._server.shutdown()
        self._server.server_close()

    def expire(self) -> None:
        """The tokens run out; they can be renewed."""
        self.access.clear()

    def revoke(self) -> None:
        """The logins are taken back."""
        self.access.clear()
        self.refresh.clear()

    def get(self, door: Any) -> None:
        asked = urllib.parse.urlsplit(door.path)
        query = dict(urllib.parse.parse_qsl(asked.query))
        if asked.path == "/.well-known/oauth-protected-resource/mcp":
            answer(door, 200, {"resource": self.url, "authorization_servers": [f"{self.address}/tenant"], "scopes_supported": ["read"]})
        elif asked.path == "/.well-known/oauth-authorization-server/tenant":
            places = {name: f"{self.address}/{path}" for name, path in PLACES.items()}
            about = {"issuer": f"{self.address}/tenant", "code_challenge_methods_supported": ["S256"]}
            answer(door, 200, {**about, **places})
        elif asked.path == "/authorize":
            self.log.append("authorize")
            client = self.clients[query["client_id"]]
            assert query["redirect_uri"] in client["redirect_uris"] and query["resource"] == self.url
            assert (query["response_type"], query["scope"]) == ("code", "read")
            code = secrets.token_urlsafe()
            self.codes[code] = query
            back = urllib.parse.urlencode({"code": code, "state": query["state"], "iss": f"{self.address}/tenant"})
            answer(door, 302, {}, location=f"{query['redirect_uri']}?{back}")
        elif asked.path == "/mcp" and self.may_enter(door):
            if self.is_older:
                return self.tell(door)
            answer(door, 405, {})
        elif asked.path != "/mcp":
            answer(door, 404, {})

    def post(self, door: Any) -> None:
        body = door.rfile.read(int(door.headers.get("content-length", 0)))
        if door.path == "/register":
            self.log.append("register")
            client = secrets.token_urlsafe(8)
            self.clients[client] = json.loads(body)
            answer(door, 201, {"client_id": client, **self.clients[client]})
        elif door.path == "/token":
            self.give(door, dict(urllib.parse.parse_qsl(body.decode())))
        elif door.path.startswith("/mcp") and self.may_enter(door):
            self.serve(door, json.loads(body))

    def give(self, door: Any, form: dict[str, str]) -> None:
        assert form["client_id"] in self.clients and form["resource"] == self.url
        with self._lock:
            self.log.append(form["grant_type"])
            if form["grant_type"] == "authorization_code":
                asked = self.codes.pop(form["code"], None)
                digest = hashlib.sha256(form["code_verifier"].encode()).digest()
                challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
                good = asked is not None and asked["code_challenge"] == challenge
                good = good and asked["redirect_uri"] == form["redirect_uri"]
            else:
                time.sleep(self.renewal_seconds)
                good = form["refresh_token"] in self.refresh
                if form["refresh_token"] in self.used:
                    self.log.append("stolen")
                    self.revoke()
                self.refresh.discard(form["refresh_token"])
                self.used.add(form["refresh_token"])
            if not good:
                return answer(door, 400, {"error": "invalid_grant"})
            access, refresh = secrets.token_urlsafe(), secrets.token_urlsafe()
            self.access.add(access)
            self.refresh.add(refresh)
        given = {"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3600}
        return answer(door, 200, given)

    def may_enter(self, door: Any) -> bool:
        token = door.headers.get("authorization", "").removeprefix("Bearer ")
        if token in self.access:
            return True
        named = f'Bearer resource_metadata="{self.address}/.well-known/oauth-protected-resource/mcp"'
        answer(door, 401, {}, **{"www-authenticate": named})
        return False

    def tell(self, door: Any) -> None:
        """Everything that is said to one client, until the end."""
        name = secrets.token_hex(4)
        told = self.streams[name] = queue.Queue()
        door.send_response(200)
        door.send_header("content-type", "text/event-stream")
        door.end_headers()
        door.wfile.write(f"event: endpoint\ndata: /mcp?stream={name}\n\n".encode())
        while not self.is_closed:
            try:
                message = told.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                continue
            door.wfile.write(b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n")
        door.close_connection = True

    def serve(self, door: Any, message: dict) -> None:
        if "id" not in message:
            return answer(door, 202, None)
        result: dict = {}
        if message["method"] == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
            result["serverInfo"] = {"name": "guarded", "version": "1"}
        elif message["method"] == "tools/list":
            result = {"tools": [{"name": "secret", "inputSchema": {"type": "object"}}]}
        elif message["method"] == "tools/call":
            self.log.append("called")
            result = {"content": [{"type": "text", "text": "the cake is real"}]}
        said = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        if self.is_older:
            self.streams[door.path.partition("=")[2]].put(said)
            return answer(door, 202, None)
        return answer(door, 200, said)


PLACES = {"authorization_endpoint": "authorize", "token_endpoint": "token", "registration_endpoint": "register"}


def answer(door: Any, status: int, body: dict | None, **headers: str) -> None:
    text = b"" if body is None else json.dumps(body).encode()
    door.send_response(status)
    if text:
        door.send_header("content-type", "application/json")
    for name, value in headers.items():
        door.send_header(name, value)
    door.send_header("content-length", str(len(text)))
    door.end_headers()
    door.wfile.write(text)
