// Everything the official agent SDK for TypeScript offers, as its own types tell it, is used by a scenario. What a new version
// adds fails here until it is. Hooks: hooks.test.js.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const types = await readFile(join(here, "node_modules", "@anthropic-ai", "claude-agent-sdk", "sdk.d.ts"), "utf8");
const names = (await readdir(here)).filter((name) => name.endsWith(".js") && name !== "offered.test.js");
const scenarios = (await Promise.all(names.map((name) => readFile(join(here, name), "utf8")))).join("\n");

/** The lines of one declaration. */
function declared(begins) {
  const from = types.indexOf(begins);
  assert.ok(from >= 0, begins);
  return types.slice(from, types.indexOf("\n}", from));
}

const matches = (text, pattern) => [...new Set([...text.matchAll(pattern)].map((match) => match[1]))];
const isUsed = (name) => new RegExp(`\\b${name}\\b`).test(scenarios);

test("every option has a scenario", () => {
  const options = matches(declared("export declare type Options = {"), /^ {4}(\w+)\??:/gm);
  assert.ok(options.length > 60, "the types are read");
  assert.deepEqual(options.filter((name) => !isUsed(name)), []);
});

test("every request of a running session has a scenario", () => {
  const methods = matches(declared("export declare interface Query "), /^ {4}(\w+)\(/gm);
  assert.ok(methods.length > 25, "the types are read");
  assert.deepEqual(methods.filter((name) => !scenarios.includes(`.${name}(`)), []);
});

// What the process asks of the program, and not the other way round.
const ASKED_BY_THE_PROCESS = ["can_use_tool", "hook_callback", "elicitation", "request_user_dialog"];

test("every request that the types name is one that is known", async (t) => {
  const union = types.match(/^declare type SDKControlRequestInner = (.+);$/m)[1].split(" | ");
  const subtypes = union.map((name) => matches(declared(`declare type ${name} = {`), /^ {4}subtype: '(\w+)'/gm)[0]);
  const wanted = subtypes.filter((subtype) => !ASKED_BY_THE_PROCESS.includes(subtype));
  assert.ok(wanted.length > 30, "the types are read");
  const folder = await mkdtemp(join(tmpdir(), "pelton-offered-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const env = { PATH: process.env.PATH, HOME: folder, ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: "http://127.0.0.1:9" };
  const words = ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"];
  const session = spawn(process.env.PELTON_BIN, words, { cwd: folder, env, stdio: ["pipe", "pipe", "inherit"] });
  for (const subtype of [...wanted, "no_such_request"]) {
    session.stdin.write(`${JSON.stringify({ type: "control_request", request_id: subtype, request: { subtype } })}\n`);
  }
  session.stdin.end();
  const answers = new Map();
  for await (const line of createInterface({ input: session.stdout })) {
    const { type, response } = JSON.parse(line);
    if (type === "control_response") answers.set(response.request_id, response.error ?? "");
  }
  const unknown = [...answers].filter(([, error]) => error.startsWith("Unsupported")).map(([subtype]) => subtype);
  assert.deepEqual(unknown, ["no_such_request"]);
  assert.deepEqual(wanted.filter((subtype) => !answers.has(subtype)), [], "each is answered");
});

// About models and modes of an organisation: no process is asked.
const OF_THE_SDK_ALONE = ["filterEscalatingDefaultMode", "matchDeniedModels"];

test("every function has a scenario", () => {
  const functions = matches(types, /^export declare function (\w+)/gm).filter((name) => !OF_THE_SDK_ALONE.includes(name));
  assert.ok(functions.length > 15, "the types are read");
  assert.deepEqual(functions.filter((name) => !scenarios.includes(`${name}(`)), []);
});
