// Callbacks for every event that a session without a screen can have, in one session that has most of them.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";

import { HOOK_EVENTS } from "@anthropic-ai/claude-agent-sdk";

import { answers, call, prompts, stage, text } from "./agent.js";

// What belongs to start options, servers, watched files, added directories and teams is not in this session.
const ELSEWHERE = ["Setup", "TeammateIdle", "Elicitation", "ElicitationResult", "FileChanged", "DirectoryAdded"];

test("every event of a session reaches the program", async (t) => {
  const order = { description: "say", prompt: "Say it.", subagent_type: "general-purpose" };
  const here = await stage(
    t,
    text("Inner.", { when: { last_user_text: "Say it" }, always: true }),
    { reply: [{ tool: "Bash", input: { command: "mkdir -p sub; cd sub" } }, { tool: "Read", input: { file_path: "none" } }] },
    call("Bash", { command: "touch made" }),
    call("Bash", { command: "touch never" }),
    call("Agent", { ...order, isolation: "worktree" }),
    call("TaskCreate", { subject: "a", description: "b" }),
    call("TaskUpdate", { taskId: "1", status: "completed" }),
    text("One."),
    text("Two."),
    text("Three."),
    text("<summary>x</summary>"),
    { status: 400, message: "no", times: 9 },
  );
  const git = (...words) => execFileSync("git", ["-c", "user.name=a", "-c", "user.email=b", ...words], { cwd: here.work });
  await mkdir(join(here.work, ".claude", "commands"), { recursive: true });
  await writeFile(join(here.work, ".claude", "commands", "look.md"), "Look at $ARGUMENTS.");
  await writeFile(join(here.work, "CLAUDE.md"), "Be brief.");
  git("init", "-q");
  git("add", "-A");
  git("commit", "-qm", "x");
  const elsewhere = join(here.work, "..", "elsewhere");
  const seen = [];
  const note = async (input) => {
    seen.push(input);
    if (input.hook_event_name !== "WorktreeCreate") return {};
    await mkdir(elsewhere);
    return { hookSpecificOutput: { hookEventName: "WorktreeCreate", worktreePath: elsewhere } };
  };
  const said = prompts();
  const running = here.query(said, {
    hooks: Object.fromEntries(HOOK_EVENTS.map((event) => [event, [{ hooks: [note] }]])),
    model: "claude-opus-5-5",
    allowedTools: ["Bash(mkdir:*)", "Bash(cd:*)", "Agent(*)", "TaskCreate(*)", "TaskUpdate(*)"],
    disallowedTools: ["Bash(touch never)"],
    canUseTool: async (name, input) => ({ behavior: "allow", updatedInput: input }),
  });
  const next = ["/look here", "Three?", "/compact", "/clear", "Fail."];
  const ends = [];
  said.say("Go.");
  await assert.rejects(async () => {
    for await (const message of running) {
      if (message.type !== "result") continue;
      ends.push(message);
      if (ends.length === 1) await running.setModel("claude-sonnet-5-5");
      if (ends.length === 2) await writeFile(join(here.work, ".claude", "settings.json"), '{"permissions":{"deny":["WebFetch"]}}');
      const words = next.shift();
      if (words) said.say(words);
      else said.close();
    }
  });
  assert.equal(ends.length, 6);
  const called = new Set(seen.map((input) => input.hook_event_name));
  assert.deepEqual(HOOK_EVENTS.filter((event) => !called.has(event)).sort(), ELSEWHERE.toSorted());
  // Each knows whose it is, and where.
  assert.ok(seen.every((input) => input.session_id && input.transcript_path && input.cwd));
  const shown = seen.filter((input) => input.hook_event_name === "MessageDisplay");
  assert.deepEqual(shown.map((input) => [input.delta, input.index, input.final]), ["One.", "Two.", "Three."].map((words) => [words, 0, true]));
  const [first] = seen.filter((input) => input.hook_event_name === "PostToolUse");
  const bodies = await here.bodies();
  assert.equal(answers(bodies[1])[0].tool_use_id, first.tool_use_id);
});
