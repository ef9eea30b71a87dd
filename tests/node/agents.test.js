// What takes its time: an agent that works for longer than half a minute says what it does, where the program wants to know.

import assert from "node:assert/strict";
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
