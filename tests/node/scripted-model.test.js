// The official TypeScript client streams from the scripted model: text, thinking, tools and errors.

import assert from "node:assert/strict";
import { test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";

import { scripted } from "./scripted.js";

const MODEL = "claude-opus-5-5";
const READ = {
  name: "Read",
  description: "Reads a file.",
  input_schema: { type: "object", properties: { file_path: { type: "string" } }, required: ["file_path"] },
};

const ask = (more = {}) => ({
  model: MODEL,
  max_tokens: 4096,
  messages: [{ role: "user", content: "Hello" }],
  ...more,
});

/** The request that follows: the answer as it was received, then the tools' results. */
const answered = (request, message, ...results) => ({
  ...request,
  messages: [...request.messages, { role: "assistant", content: message.content }, { role: "user", content: results }],
});

const result = (call, text) => ({ type: "tool_result", tool_use_id: call.id, content: text });

/** The error a promise fails with. */
async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  assert.fail("nothing was thrown");
}

test("text streams in the pieces of the script", async (t) => {
  const client = await scripted(t, [{ reply: [{ text: "Hello, world", fragments: [5, 7] }] }]);
  const pieces = [];
  const stream = client.messages.stream(ask()).on("text", (piece) => pieces.push(piece));
  const message = await stream.finalMessage();
  assert.deepEqual(pieces, ["Hello", ", ", "world"]);
  assert.equal(message.stop_reason, "end_turn");
  assert.equal(message.model, MODEL);
  assert.ok(message.usage.input_tokens > 0 && message.usage.output_tokens > 0);
  assert.ok(stream.request_id);
});

test("characters survive being cut into single bytes", async (t) => {
  const text = "naïve 🦀 日本語";
  const step = { reply: [{ text, fragments: "random" }], pace: { chunk_bytes: 1 } };
  const client = await scripted(t, [step], { seed: 7 });
  assert.equal(await client.messages.stream(ask()).finalText(), text);
});

test("thinking streams and its signature is accepted when replayed", async (t) => {
  const client = await scripted(t, [
    { reply: [{ thinking: "Which file?" }, { tool: "Read", input: { file_path: "a" } }] },
    { reply: [{ text: "Done." }] },
  ]);
  const request = ask({ tools: [READ], thinking: { type: "adaptive", display: "summarized" } });
  const pieces = [];
  const message = await client.messages
    .stream(request)
    .on("thinking", (piece) => pieces.push(piece))
    .finalMessage();
  assert.equal(pieces.join(""), "Which file?");
  const [thinking, call] = message.content;
  assert.equal(thinking.thinking, "Which file?");
  assert.ok(thinking.signature);
  assert.equal(await client.messages.stream(answered(request, message, result(call, "contents"))).finalText(), "Done.");
});

test("changed thinking is refused", async (t) => {
  const client = await scripted(t, [
    { reply: [{ thinking: "Which file?" }, { tool: "Read", input: { file_path: "a" } }] },
  ]);
  const request = ask({ tools: [READ], thinking: { type: "adaptive", display: "summarized" } });
  const message = await client.messages.stream(request).finalMessage();
  message.content[0].thinking = "Something else.";
  const error = await failure(
    client.messages.create(answered(request, message, result(message.content[1], "contents"))),
  );
  assert.ok(error instanceof Anthropic.BadRequestError, String(error));
  assert.match(error.message, /thinking/);
});

test("parallel tools stream their input and take their results", async (t) => {
  const reply = [
    { text: "Both." },
    { tool: "Read", input: { file_path: "a" }, fragments: "random" },
    { tool: "Read", input: { file_path: "b" }, fragments: 3 },
  ];
  const client = await scripted(
    t,
    [{ reply }, { when: { last_tool_result: "of b" }, reply: [{ text: "Seen." }] }],
    { seed: 3 },
  );
  const request = ask({ tools: [READ] });
  const partial = [];
  const message = await client.messages
    .stream(request)
    .on("inputJson", (piece) => partial.push(piece))
    .finalMessage();
  assert.ok(partial.length >= 3);
  assert.equal(message.stop_reason, "tool_use");
  const [, first, second] = message.content;
  assert.deepEqual([first.input, second.input], [{ file_path: "a" }, { file_path: "b" }]);
  assert.notEqual(first.id, second.id);
  const follow = answered(request, message, result(first, "contents of a"), result(second, "contents of b"));
  assert.equal(await client.messages.stream(follow).finalText(), "Seen.");
});

test("a call left unanswered is refused in the words of the API", async (t) => {
  const client = await scripted(t, [{ reply: [{ tool: "Read", input: { file_path: "a" } }] }]);
  const request = ask({ tools: [READ] });
  const message = await client.messages.create(request);
  const error = await failure(
    client.messages.create(answered(request, message, { type: "text", text: "Never mind." })),
  );
  assert.ok(error instanceof Anthropic.BadRequestError, String(error));
  assert.equal(error.error.error.type, "invalid_request_error");
  assert.ok(error.message.includes("tool_use") && error.message.includes(message.content[0].id));
});

for (const [status, kind, type] of [
  [400, "BadRequestError", "invalid_request_error"],
  [401, "AuthenticationError", "authentication_error"],
  [403, "PermissionDeniedError", "permission_error"],
  [404, "NotFoundError", "not_found_error"],
  [413, "APIError", "request_too_large"],
  [429, "RateLimitError", "rate_limit_error"],
  [500, "InternalServerError", "api_error"],
  [529, "InternalServerError", "overloaded_error"],
]) {
  test(`status ${status} becomes the client's own error`, async (t) => {
    const client = await scripted(t, [{ status }]);
    const error = await failure(client.messages.stream(ask()).finalMessage());
    assert.ok(error instanceof Anthropic[kind], String(error));
    assert.equal(error.status, status);
    assert.equal(error.error.error.type, type);
    assert.ok(error.requestID);
  });
}

test("the client's own retry gets through", async (t) => {
  const steps = [
    { status: 529, headers: { "retry-after": "0" } },
    { status: 429, headers: { "retry-after": "0" } },
    { reply: [{ text: "At last." }] },
  ];
  const client = await scripted(t, steps, { retries: 2 });
  assert.equal(await client.messages.stream(ask()).finalText(), "At last.");
});

test("an error inside a stream is raised after what came before it", async (t) => {
  const client = await scripted(t, [{ reply: [{ text: "So far" }, { error: "overloaded_error" }] }]);
  const pieces = [];
  const stream = client.messages.stream(ask()).on("text", (piece) => pieces.push(piece));
  const error = await failure(stream.finalMessage());
  assert.equal(pieces.join(""), "So far");
  assert.ok(error instanceof Anthropic.APIError, String(error));
  assert.match(error.message, /overloaded_error/);
});

test("a connection cut in mid stream is an error and no short answer", async (t) => {
  const reply = [{ text: "Hello, world", fragments: [5, 7] }];
  const client = await scripted(t, [{ fault: { cut_after_events: 4 }, reply }]);
  const error = await failure(client.messages.stream(ask()).finalMessage());
  assert.ok(error instanceof Anthropic.AnthropicError, String(error));
});

test("unknown events, pings and comments are passed over", async (t) => {
  const reply = [
    { comment: "keep" },
    { ping: true },
    { event: { name: "future_event", data: { type: "future_event", x: 1 } } },
    { text: "Still here." },
  ];
  const client = await scripted(t, [{ reply }]);
  assert.equal(await client.messages.stream(ask()).finalText(), "Still here.");
});

test("tokens are counted and models are listed", async (t) => {
  const client = await scripted(t, []);
  const { model, messages } = ask();
  const counted = await client.messages.countTokens({ model, messages });
  assert.ok(counted.input_tokens > 0);
  const ids = [];
  for await (const known of client.models.list()) ids.push(known.id);
  assert.ok(ids.includes(MODEL));
  const error = await failure(client.messages.create({ ...ask(), model: "no-such-model" }));
  assert.ok(error instanceof Anthropic.NotFoundError, String(error));
});

test("a request for no tokens warms the cache", async (t) => {
  const client = await scripted(t, [{ reply: [{ text: "One." }] }]);
  const system = [{ type: "text", text: "Rules. ".repeat(3000), cache_control: { type: "ephemeral" } }];
  const warmed = await client.messages.create({ ...ask({ system }), max_tokens: 0 });
  assert.deepEqual([warmed.content, warmed.stop_reason, warmed.usage.output_tokens], [[], "max_tokens", 0]);
  const asked = await client.messages.create(ask({ system }));
  assert.equal(asked.usage.cache_read_input_tokens, warmed.usage.cache_creation_input_tokens);
});
