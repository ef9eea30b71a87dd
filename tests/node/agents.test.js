// Agents as programs see them: what they are doing, whether somebody waits for them, and what a typed skill hands to one.

import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";

import { call, result, stage, system, text } from "./agent.js";

test("what an agent does is told in a line", async (t) => {
  const order = { description: "dig", prompt: "Dig.", subagent_type: "general-purpose" };
  const here = await stage(
    t,
    text("Digging for gold.", { when: { model: "haiku" }, always: true }),
    call("Bash", { command: "sleep 32" }, { when: { last_user_text: "Dig." } }),
    call("Agent", order),
    text("Gold."),
    text("Hi."),
  );
  const messages = await here.ask("Go.", { agentProgressSummaries: true, allowedTools: ["Bash"] });
  assert.equal(result(messages).result, "Hi.");
  const [started] = system(messages, "task_started");
  const told = system(messages, "task_progress").filter((message) => message.summary);
  assert.deepEqual(told.map((message) => [message.task_id, message.summary]), [[started.task_id, "Digging for gold."]]);
  const aside = (await here.bodies()).filter((body) => body.model.includes("haiku"));
  assert.match(JSON.stringify(aside[0].messages), /sleep 32/);
});

test("an agent that nobody waits for is a task of the background from its first frame", async (t) => {
  const order = { description: "dig", prompt: "Dig.", subagent_type: "general-purpose" };
  const here = await stage(
    t,
    text("Gold.", { when: { last_user_text: "Dig." }, times: 2 }),
    { reply: [{ tool: "Agent", input: { ...order, run_in_background: true } }, { tool: "Agent", input: { ...order, run_in_background: false } }] },
    text("Hi.", { always: true }),
  );
  const messages = await here.ask("Go.");
  const started = system(messages, "task_started").map((task) => [task.is_backgrounded, task.spawn_depth]);
  assert.deepEqual(started.sort(), [[false, 1], [true, 1]]);
  assert.ok(system(messages, "task_updated").every((update) => !("is_backgrounded" in update.patch)));
  assert.ok((await here.bodies()).length >= 4);
});

test("a skill that an agent follows answers by itself", async (t) => {
  const here = await stage(t, text("Found gold.", { when: { last_user_text: "Dig for rubies" } }), text("I heard of gold."));
  const skill = join(here.work, ".claude/skills/dig");
  await mkdir(skill, { recursive: true });
  await writeFile(join(skill, "SKILL.md"), "---\ndescription: Digs.\ncontext: fork\n---\nDig for $ARGUMENTS.");
  const messages = await here.ask("/dig rubies", { settingSources: ["project"] });
  const { result: words, num_turns, is_error, usage, session_id } = result(messages);
  assert.deepEqual([words, num_turns, is_error], ["Found gold.", 0, false]);
  assert.deepEqual(usage.output_tokens_details, { thinking_tokens: 0 });
  const [task] = messages.filter((message) => message.type === "user");
  assert.match(task.parent_tool_use_id, /^forked-command-dig-[0-9a-f]{32}$/);
  const after = await here.ask("What did you hear?", { settingSources: ["project"], resume: session_id });
  assert.equal(result(after).result, "I heard of gold.");
  assert.match(JSON.stringify((await here.bodies())[1].messages), /Found gold\./);
});

test("one exchange is summed up where the program asks for it", async (t) => {
  const here = await stage(t, text("Hi."), text("They said hi."), text("Later."));
  const { session_id } = result(await here.ask("Hello."));
  const messages = await here.ask("/compact", { resume: session_id });
  assert.deepEqual([result(messages).is_error, result(messages).num_turns], [false, 0]);
  const [boundary] = system(messages, "compact_boundary");
  assert.equal(boundary.compact_metadata.trigger, "manual");
  await here.ask("And?", { resume: session_id });
  assert.match(JSON.stringify((await here.bodies())[2].messages), /They said hi\./);
});

test("a session that works as an agent asks the agent's model, unless the program names one", async (t) => {
  const agents = { digger: { description: "Digs.", prompt: "You dig.", model: "haiku" } };
  const settings = { model: "claude-sonnet-4-5" };
  const here = await stage(t, text("Hi.", { always: true }));
  const asked = [];
  for (const more of [{}, { settings }, { model: "claude-sonnet-4-5" }]) {
    const messages = await here.ask("Go.", { agent: "digger", agents, ...more });
    asked.push([system(messages, "init")[0].model, (await here.bodies()).at(-1).model]);
  }
  assert.match(asked[0][0], /haiku/);
  assert.deepEqual(asked, [asked[0], asked[0], ["claude-sonnet-4-5", "claude-sonnet-4-5"]]);
  assert.equal(asked[0][0], asked[0][1]);
});
