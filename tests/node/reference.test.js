// Servers of tools that others wrote: the published reference ones, each through the SDK and by the command line.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { answers, call, plain, result, results, stage, system, text } from "./agent.js";

const run = promisify(execFile);

/** A server that was installed beside these tests. */
const installed = (name, ...args) => ({
  command: process.execPath,
  args: [fileURLToPath(new URL(`node_modules/@modelcontextprotocol/server-${name}/dist/index.js`, import.meta.url)), ...args],
});

/** Asks by the command line, where the model says no more than this. */
async function byCommandLine(here, servers, prompt = "Go.") {
  const { cwd, env } = here.options();
  const allowed = Object.keys(servers).map((name) => `mcp__${name}`);
  const config = JSON.stringify({ mcpServers: servers });
  const args = ["-p", prompt, "--allowedTools", ...allowed, "--strict-mcp-config", "--mcp-config", config];
  const ran = run(process.env.PELTON_BIN, args, { cwd, env });
  // A prompt may come that way, too, and none does.
  ran.child.stdin.end();
  assert.equal((await ran).stdout.trim(), "Done.");
}

/** Calls a tool either way: it is told of, called, and answers with this. */
async function check(here, name, server, tool, expected) {
  const messages = await here.ask("Go.", { mcpServers: { [name]: server }, allowedTools: [`mcp__${name}`] });
  assert.equal(result(messages).result, "Done.");
  const init = system(messages, "init")[0];
  // What there is is stated without waiting for it; the model is asked with it.
  assert.deepEqual(init.mcp_servers.map((each) => [each.name, ["connected", "pending"].includes(each.status)]), [[name, true]]);
  const offered = (await here.bodies())[0].tools.map((each) => each.name);
  assert.ok(offered.includes(`mcp__${name}__${tool}`), offered.join());
  assert.match(plain(results(messages)[0].content), expected);
  await byCommandLine(here, { [name]: server });
  const bodies = await here.bodies();
  assert.equal(bodies.length, 4);
  for (const body of [bodies[1], bodies[3]]) assert.match(plain(answers(body)[0].content), expected);
}

const twice = (name, tool, input) => {
  const steps = [call(`mcp__${name}__${tool}`, input), text("Done.")];
  return [...steps, ...steps];
};

test("the server that has everything: tools, prompts, things to read", async (t) => {
  const server = installed("everything", "stdio");
  const here = await stage(t, ...twice("everything", "echo", { message: "round and round" }), text("Done."), text("Done."));
  await check(here, "everything", server, "echo", /round and round/);
  const messages = await here.ask("/mcp__everything__simple-prompt", { mcpServers: { everything: server } });
  assert.equal(result(messages).result, "Done.");
  await byCommandLine(here, { everything: server }, "Read @everything:demo://resource/static/document/architecture.md");
  const bodies = await here.bodies();
  assert.match(JSON.stringify(bodies[4].messages), /simple prompt/);
  assert.match(JSON.stringify(bodies[5].messages), /Architecture/);
});

test("the server of files keeps to the directories of the session", async (t) => {
  const here = await stage(t, ...twice("files", "read_text_file", { path: "notes.txt" }));
  await writeFile(join(here.work, "notes.txt"), "buy milk");
  await check(here, "files", installed("filesystem", here.work), "read_text_file", /buy milk/);
});

test("the server that remembers", async (t) => {
  const entities = [{ name: "wheel", entityType: "thing", observations: ["it turns"] }];
  const here = await stage(t, ...twice("memory", "create_entities", { entities }));
  const file = join(here.work, "memory.jsonl");
  const server = { ...installed("memory"), env: { MEMORY_FILE_PATH: file } };
  const messages = await here.ask("Go.", { mcpServers: { memory: server }, allowedTools: ["mcp__memory"] });
  assert.equal(result(messages).result, "Done.");
  assert.match(await readFile(file, "utf8"), /it turns/);
  await byCommandLine(here, { memory: server });
  assert.match(plain(answers((await here.bodies())[1])[0].content), /wheel/);
});
