// Servers of tools that a program names, changes and takes away while its session runs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { createSdkMcpServer, tool } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";

import { answers, call, plain, prompts, stage, text } from "./agent.js";

const weather = (env = {}) => ({ command: process.execPath, args: [fileURLToPath(new URL("weather-server.js", import.meta.url))], env });
const calculator = () =>
  createSdkMcpServer({
    name: "calc",
    tools: [tool("add", "Adds.", { a: z.number(), b: z.number() }, async ({ a, b }) => ({ content: [{ type: "text", text: String(a + b) }] }))],
  });
const FORECAST = call("mcp__weather__forecast", { city: "Bern" });

test("servers are added, replaced and removed while a session runs", async (t) => {
  const both = { reply: [FORECAST.reply[0], { tool: "mcp__calc__add", input: { a: 1, b: 2 } }] };
  const here = await stage(t, text("None."), both, text("Two."), FORECAST, text("Warmer."), FORECAST, text("Gone."));
  const said = prompts();
  const running = here.query(said, { allowedTools: ["mcp__weather", "mcp__calc"] });
  const [changes, inits] = [[], []];
  const status = async () => Object.fromEntries((await running.mcpServerStatus()).map((each) => [each.name, each.status]));
  said.say("Go.");
  let ends = 0;
  for await (const message of running) {
    if (message.type === "system" && message.subtype === "init") inits.push(message);
    if (message.type !== "result") continue;
    ends += 1;
    if (ends === 1) {
      const broken = { command: "no-such-program-at-all" };
      changes.push(await running.setMcpServers({ weather: weather(), calc: calculator(), broken }));
      changes.push(await status());
    }
    if (ends === 2) changes.push(await running.setMcpServers({ weather: weather({ DEGREES: "301" }) }));
    if (ends === 3) changes.push(await running.setMcpServers({}), await status());
    if (ends === 4) said.close();
    else said.say("And now?");
  }
  const [first, states, second, third, left] = changes;
  assert.deepEqual([first.added.sort(), first.removed, Object.keys(first.errors)], [["calc", "weather"], [], ["broken"]]);
  assert.match(first.errors.broken, /could not be started/);
  assert.deepEqual(states, { weather: "connected", calc: "connected", broken: "failed" });
  assert.deepEqual([second.added, second.removed.sort()], [["weather"], ["broken", "calc", "weather"]]);
  assert.deepEqual([third.added, third.removed, left], [[], ["weather"], {}]);
  const bodies = await here.bodies();
  assert.deepEqual(answers(bodies[2]).map((each) => plain(each.content)), ["Bern: 290 K", "3"]);
  assert.equal(plain(answers(bodies[4])[0].content), "Bern: 301 K", "the one that took its place answers");
  const [gone] = answers(bodies[6]);
  assert.ok(gone.is_error && plain(gone.content).includes("no longer part of this session"), plain(gone.content));
  // What stands in front changes once, when there is somebody to serve at all.
  assert.deepEqual(bodies.slice(2).filter((body) => JSON.stringify(body.tools) !== JSON.stringify(bodies[1].tools)), []);
  assert.deepEqual(inits.map((init) => init.mcp_servers.map((each) => each.name).sort()), [[], ["broken", "calc", "weather"], ["weather"], []]);
  assert.ok(!inits.at(-1).tools.some((name) => name.startsWith("mcp__")));
});

test("servers of the command line stay; they are put aside, taken up and met again", async (t) => {
  const here = await stage(t, FORECAST, text("One."), FORECAST, text("Off."), FORECAST, text("On."));
  const said = prompts();
  const running = here.query(said, { mcpServers: { weather: weather() }, allowedTools: ["mcp__weather"] });
  const asked = [];
  said.say("Go.");
  let ends = 0;
  for await (const message of running) {
    if (message.type !== "result") continue;
    ends += 1;
    if (ends === 1) {
      asked.push(await running.setMcpServers({}));
      await running.toggleMcpServer("weather", false);
      asked.push((await running.mcpServerStatus())[0].status);
    }
    if (ends === 2) {
      await running.toggleMcpServer("weather", true);
      await running.reconnectMcpServer("weather");
      asked.push((await running.mcpServerStatus())[0].status);
    }
    if (ends === 3) said.close();
    else said.say("And now?");
  }
  assert.deepEqual(asked, [{ added: [], removed: [], errors: {} }, "disabled", "connected"]);
  const bodies = await here.bodies();
  assert.equal(plain(answers(bodies[1])[0].content), "Bern: 290 K");
  assert.match(plain(answers(bodies[3])[0].content), /the server weather is not connected \(disabled\)/);
  assert.equal(plain(answers(bodies[5])[0].content), "Bern: 290 K");
});
