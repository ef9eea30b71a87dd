// A repository with one of everything, through the SDK: what happens is compared line by line.

import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { cp, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";

import { createSdkMcpServer, tool } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";

import { call, plain, prompts, stage, text } from "./agent.js";

const SAMPLE = join(import.meta.dirname, "..", "sample");
const skip = spawnSync("python3", ["--version"]).status === 0 ? false : "no python3 for its servers";
const NOTES = ["notes", "far", "old", "plugin_kit_tools", "inside"].map((server) => `mcp__${server}__note`);
const inside = () =>
  createSdkMcpServer({
    name: "inside",
    tools: [tool("note", "Takes a note.", { text: z.string() }, async (said) => ({ content: [{ type: "text", text: `inside noted ${said.text}` }] }))],
  });

/** What a message says, without what is different every time. */
function line(message) {
  const within = message.parent_tool_use_id ? "  " : "";
  if (message.type === "system" && message.subtype === "init") return loaded(message);
  if (message.type === "result") return `result ${message.subtype} ${message.result}`;
  if (message.type !== "assistant" && message.type !== "user") return undefined;
  const { content } = message.message;
  const first = (words) => words.split("\n")[0];
  if (typeof content === "string") return `${within}${message.type} ${first(content)}`;
  const [block] = content;
  if (block.type === "text") return `${within}${message.type} ${first(block.text)}`;
  if (block.type === "tool_use") return `${within}calls ${block.name}`;
  return `${within}${block.is_error ? "refused" : "answered"} ${first(plain(block.content))}`;
}

/** What of the sample was loaded, and what is pending. */
function loaded(init) {
  const mine = (name) => ["greet", "look", "kit:"].some((start) => name.startsWith(start));
  return {
    servers: init.mcp_servers.map((each) => `${each.name} ${each.status}`).sort(),
    tools: init.tools.filter((name) => name.startsWith("mcp__")).sort(),
    skills: init.skills.filter(mine).sort(),
    commands: init.slash_commands.filter(mine).sort(),
    agents: init.agents.filter((name) => ["reviewer", "kit:tester"].includes(name)).sort(),
    plugins: init.plugins.map((each) => each.name),
    plugin_errors: init.plugin_errors.map((each) => each.plugin),
    model: init.model,
  };
}

test("the sample runs through the SDK", { skip }, async (t) => {
  const bash = ["echo done", "rm -rf gone"].map((command) => ({ tool: "Bash", input: { command } }));
  const here = await stage(
    t,
    text("It is small."),
    call("Skill", { skill: "greet", args: "Ann" }),
    { reply: NOTES.map((name) => ({ tool: name, input: { text: "one" } })) },
    call("Agent", { subagent_type: "reviewer", description: "Review", prompt: "Review it." }),
    text("Nothing is wrong."),
    { reply: bash },
    text("All done."),
  );
  await cp(SAMPLE, here.work, { recursive: true });
  const folder = dirname(here.work);
  const [gate, log] = [join(folder, "gate"), join(folder, "hooks.log")];
  const server = spawn("python3", [join(SAMPLE, "server.py"), "serve"], {
    env: { ...process.env, SAMPLE_GATE: gate },
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => server.kill("SIGKILL"));
  const port = await new Promise((resolve) => createInterface({ input: server.stdout }).once("line", resolve));
  const address = `http://127.0.0.1:${port}`;
  const env = { SAMPLE_HTTP: address, SAMPLE_SSE: address, SAMPLE_LOG: log, SAMPLE_GATE: gate };
  execFileSync(process.env.PELTON_BIN, ["trust", "--yes"], { cwd: here.work, env: here.options({ env }).env });

  const said = prompts();
  const running = here.query(said, { env, mcpServers: { inside: inside() }, settingSources: ["user", "project", "local"] });
  const events = [];
  let ends = 0;
  said.say("/look README.md");
  for await (const message of running) {
    const seen = line(message);
    if (seen !== undefined) events.push(seen);
    if (message.type !== "result") continue;
    ends += 1;
    if (ends === 2) {
      said.close();
      continue;
    }
    await writeFile(gate, "");
    while ((await running.mcpServerStatus()).some((each) => each.status === "pending")) await new Promise((wake) => setTimeout(wake, 50));
    said.say("Do everything.");
  }
  const expected = JSON.parse(await readFile(join(SAMPLE, "expected.json"), "utf8")).sdk;
  const lines = async (file) => (await readFile(file, "utf8")).trimEnd().split("\n");
  const init = (event) => (event.startsWith("init ") ? JSON.parse(event.slice("init ".length)) : event);
  assert.deepEqual(events, expected.events.map(init));
  assert.deepEqual(await lines(log), expected.hooks);
  assert.deepEqual(await lines(`${log}.kit`), expected["hooks of the plugin"]);
  assert.deepEqual(await lines(`${log}.tool`), expected["hooks that are tools"]);
  assert.deepEqual(await lines(`${log}.own`), expected["hooks of the agent and the skill"]);
  const bodies = await here.bodies();
  assert.ok(JSON.stringify(bodies[0].messages).includes("Everything here is small on purpose."));
  assert.ok(JSON.stringify(bodies[0].messages).includes("Short words are better"));
  assert.ok(JSON.stringify(bodies.at(-1).messages).includes("Headings in Markdown"));
  assert.ok(JSON.stringify(bodies[2].messages).includes("Greet Ann kindly."));
});
