// Everything the official agent SDK for TypeScript offers, as its own types tell it, is used by a scenario. What a new version
// adds fails here until it is. Hooks: hooks.test.js.

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
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

// About models and modes of an organisation: no process is asked.
const OF_THE_SDK_ALONE = ["filterEscalatingDefaultMode", "matchDeniedModels"];

test("every function has a scenario", () => {
  const functions = matches(types, /^export declare function (\w+)/gm).filter((name) => !OF_THE_SDK_ALONE.includes(name));
  assert.ok(functions.length > 15, "the types are read");
  assert.deepEqual(functions.filter((name) => !scenarios.includes(`${name}(`)), []);
});
