// Servers of tools that others wrote: the published reference ones, each through the SDK and by the command line.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { answers, call, plain, prompts, result, results, stage, system, text } from "./agent.js";

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

/** A port that nobody listens at. */
async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** The server that has everything, at an address. */
async function atAddress(t, kind) {
  const port = await freePort();
  const { command, args } = installed("everything", kind);
  const server = spawn(command, args, { env: { PATH: process.env.PATH, PORT: String(port) }, stdio: "ignore" });
  const ended = new Promise((resolve) => server.once("close", resolve));
  t.after(async () => {
    server.kill("SIGKILL");
    await ended;
  });
  const url = kind === "sse" ? `http://127.0.0.1:${port}/sse` : `http://127.0.0.1:${port}/mcp`;
  for (;;) {
    assert.equal(server.exitCode, null, "the server has ended");
    try {
      await fetch(`http://127.0.0.1:${port}/`);
      return { type: kind === "sse" ? "sse" : "http", url };
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

/** The ways to the server that has everything. */
const ways = {
  stdio: async () => installed("everything", "stdio"),
  streamableHttp: (t) => atAddress(t, "streamableHttp"),
  sse: (t) => atAddress(t, "sse"),
};

for (const [name, reach] of Object.entries(ways)) {
  test(`the server that has everything, by ${name}: progress, structure, pictures, links, roots, a question`, async (t) => {
    const server = await reach(t);
    const tool = (tool, input = {}) => call(`mcp__everything__${tool}`, input);
    const here = await stage(
      t,
      tool("trigger-long-running-operation", { duration: 1, steps: 2 }),
      tool("get-structured-content", { location: "New York" }),
      tool("get-tiny-image"),
      tool("get-resource-links", { count: 2 }),
      tool("get-roots-list"),
      tool("trigger-elicitation-request"),
      text("Done."),
      text("Done."),
    );
    const asked = [];
    const options = {
      mcpServers: { everything: server },
      allowedTools: ["mcp__everything"],
      onElicitation: async (request) => {
        asked.push(request);
        return { action: "accept", content: { name: "Ada", check: true } };
      },
    };
    const messages = await here.ask("Go.", options);
    assert.equal(result(messages).result, "Done.");
    const [long, structured, image, links, roots, elicited] = results(messages);
    assert.match(plain(long.content), /Long running operation completed/);
    assert.match(plain(structured.content), /temperature/);
    assert.ok(image.content.some((block) => block.type === "image" && block.source.media_type === "image/png"), JSON.stringify(image));
    assert.match(plain(links.content), /demo:\/\/resource\/dynamic\/text\/2/);
    assert.ok(plain(roots.content).includes(`file://${here.work}`), plain(roots.content));
    assert.match(plain(elicited.content), /Ada/);
    assert.equal(asked.length, 1);
    assert.deepEqual([asked[0].serverName, asked[0].mode ?? "form"], ["everything", "form"]);
    const bodies = await here.bodies();
    assert.deepEqual(answers(bodies[3])[0].content.filter((block) => block.type === "image").length, 1);
    // What it has to read, and its prompts, by name.
    const read = "/mcp__everything__args-prompt Zurich";
    assert.equal(result(await here.ask(read, options)).result, "Done.");
    assert.match(JSON.stringify((await here.bodies())[7].messages.at(-1)), /Zurich/);
  });
}

test("a call is given up, and the server goes on", async (t) => {
  const server = installed("everything", "stdio");
  const here = await stage(
    t,
    call("mcp__everything__trigger-long-running-operation", { duration: 120, steps: 240 }),
    call("mcp__everything__echo", { message: "still here" }),
    text("Done."),
  );
  const said = prompts();
  const running = here.query(said, { mcpServers: { everything: server }, allowedTools: ["mcp__everything"], includePartialMessages: true });
  said.say("Go.");
  const ends = [];
  let isInterrupted = false;
  for await (const message of running) {
    // It says how far it is: then it runs.
    if (message.type === "tool_progress" && !isInterrupted) {
      isInterrupted = true;
      await running.interrupt();
    }
    if (message.type !== "result") continue;
    ends.push(message);
    if (ends.length === 1) said.say("And now?");
    else said.close();
  }
  assert.deepEqual(ends.map((end) => end.terminal_reason), ["aborted_tools", "completed"]);
  const bodies = await here.bodies();
  assert.match(plain(answers(bodies[2])[0].content), /still here/);
});

test("a server hears of directories that the session works in later", async (t) => {
  const roots = call("mcp__everything__get-roots-list", {});
  const here = await stage(t, roots, text("One."), roots, roots, text("Two."));
  const said = prompts();
  const server = installed("everything", "stdio");
  const running = here.query(said, { mcpServers: { everything: server }, allowedTools: ["mcp__everything"] });
  said.say("Go.");
  let ends = 0;
  for await (const message of running) {
    if (message.type !== "result") continue;
    ends += 1;
    if (ends === 1) said.say(`/add-dir ${here.config}`);
    if (ends === 2) said.say("And now?");
    if (ends === 3) said.close();
  }
  const told = (await here.bodies()).map((body) => answers(body).map((each) => plain(each.content)).join());
  assert.ok(told[1].includes(here.work) && !told[1].includes(here.config), told[1]);
  assert.ok(told[4].includes(here.work) && told[4].includes(here.config), told[4]);
});

test("the server that thinks in steps", async (t) => {
  const thought = { thought: "The wheel turns.", thoughtNumber: 1, totalThoughts: 2, nextThoughtNeeded: true };
  const here = await stage(t, ...twice("thinking", "sequentialthinking", thought));
  await check(here, "thinking", installed("sequential-thinking"), "sequentialthinking", /"thoughtNumber": ?1/);
});

test("an agent's own server is there for it alone", async (t) => {
  const here = await stage(
    t,
    call("Agent", { description: "remember", prompt: "Remember the wheel.", subagent_type: "archivist" }),
    call("mcp__memory__create_entities", { entities: [{ name: "wheel", entityType: "thing", observations: ["it turns"] }] }),
    text("Remembered."),
    text("Done."),
  );
  const file = join(here.work, "memory.jsonl");
  const memory = { ...installed("memory"), env: { MEMORY_FILE_PATH: file } };
  const archivist = { description: "Remembers.", prompt: "You remember.", mcpServers: [{ memory }] };
  const messages = await here.ask("Go.", { agents: { archivist }, allowedTools: ["Agent", "mcp__memory"] });
  assert.equal(result(messages).result, "Done.");
  assert.match(await readFile(file, "utf8"), /it turns/);
  const offered = (body) => body.tools.some((tool) => tool.name.startsWith("mcp__memory"));
  assert.deepEqual((await here.bodies()).map(offered), [false, true, true, false]);
});
