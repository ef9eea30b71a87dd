// Sessions on disk, as the official agent SDK for TypeScript finds, reads, changes and goes on with them. One after the other: its
// functions look where one variable of the process says.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import * as sdk from "@anthropic-ai/claude-agent-sdk";

import { call, prompts, result, stage, system, text } from "./agent.js";

const spoken = (body) => JSON.stringify(body.messages);

/** A stage whose sessions the SDK's own functions find. */
async function at(t, ...steps) {
  const here = await stage(t, ...steps);
  process.env.CLAUDE_CONFIG_DIR = here.config;
  return here;
}

const idOf = async (here, prompt, options) => result(await here.ask(prompt, options)).session_id;

test("sessions are listed, read, named, tagged, put away and deleted", async (t) => {
  const here = await at(t, text("One."), text("Two."));
  const session = await idOf(here, "Remember me.");
  const dir = here.work;
  await sdk.renameSession(session, "My title", { dir });
  await sdk.tagSession(session, "mine", { dir });
  const [info] = await sdk.listSessions({ dir });
  assert.deepEqual([info.sessionId, info.customTitle, info.tag, info.firstPrompt], [session, "My title", "mine", "Remember me."]);
  assert.equal(info.cwd, here.work);
  const messages = await sdk.getSessionMessages(session, { dir });
  assert.deepEqual(messages.map((message) => message.type), ["user", "assistant"]);
  // What the SDK writes beside the record does not disturb us.
  await sdk.archiveSession(session, { dir });
  assert.equal(await idOf(here, "Again.", { resume: session }), session);
  await sdk.unarchiveSession(session, { dir });
  assert.ok(spoken((await here.bodies())[1]).includes("Remember me."));
  await sdk.deleteSession(session, { dir });
  assert.deepEqual(await sdk.listSessions({ dir }), []);
});

test("a fork of the SDK goes on, also from the middle", async (t) => {
  const here = await at(t, text("One."), text("Two."), text("Three."));
  const session = await idOf(here, "The first.");
  await here.ask("The second.", { resume: session });
  const messages = await sdk.getSessionMessages(session, { dir: here.work });
  const firstAnswer = messages.find((message) => message.type === "assistant");
  const { sessionId } = await sdk.forkSession(session, { dir: here.work, upToMessageId: firstAnswer.uuid });
  assert.equal(await idOf(here, "Otherwise.", { resume: sessionId }), sessionId);
  const last = spoken((await here.bodies())[2]);
  assert.ok(last.includes("The first.") && !last.includes("The second."));
});

test("a session goes on", async (t) => {
  const here = await at(t, text("One."), text("Two."));
  const session = await idOf(here, "Remember me.");
  assert.equal(await idOf(here, "Again.", { resume: session }), session);
  const bodies = await here.bodies();
  assert.ok(spoken(bodies[1]).includes("Remember me.") && spoken(bodies[1]).includes("One."));
});

test("a session goes on as another, and the first stays as it is", async (t) => {
  const here = await at(t, text("One."), text("Two."));
  const session = await idOf(here, "Remember me.");
  const fork = await idOf(here, "Otherwise.", { resume: session, forkSession: true });
  assert.notEqual(fork, session);
  assert.ok(spoken((await here.bodies())[1]).includes("Remember me."));
  assert.equal((await sdk.getSessionMessages(session, { dir: here.work })).length, 2);
  assert.equal((await sdk.getSessionMessages(fork, { dir: here.work })).length, 4);
});

test("a session is gone on with at a message", async (t) => {
  const here = await at(t, text("One."), text("Two."), text("Three."));
  const session = await idOf(here, "The first.");
  await here.ask("The second.", { resume: session });
  const messages = await sdk.getSessionMessages(session, { dir: here.work });
  const firstAnswer = messages.find((message) => message.type === "assistant");
  const back = { resume: session, forkSession: true, resumeSessionAt: firstAnswer.uuid };
  assert.equal(result(await here.ask("Otherwise.", back)).result, "Three.");
  const last = spoken((await here.bodies())[2]);
  assert.ok(last.includes("The first.") && !last.includes("The second."));
});

test("a title", async (t) => {
  const here = await at(t, text("One."));
  const session = await idOf(here, "Go.", { title: "My work" });
  assert.equal((await sdk.getSessionInfo(session, { dir: here.work })).customTitle, "My work");
  assert.equal((await here.bodies()).length, 1);
});

test("the newest one is continued", async (t) => {
  const here = await at(t, text("One."), text("Two."), text("Three."));
  await here.ask("The older.");
  const newest = await idOf(here, "The newer.");
  assert.equal(await idOf(here, "Again.", { continue: true }), newest);
  const last = spoken((await here.bodies())[2]);
  assert.ok(last.includes("The newer.") && !last.includes("The older."));
});

test("sub-agents have records of their own", async (t) => {
  const order = { description: "say", prompt: "Say it.", subagent_type: "general-purpose" };
  const inner = { reply: [{ text: "Inner words." }], when: { last_user_text: "Say it" } };
  const here = await at(t, inner, call("Agent", order), text("Done."));
  const session = await idOf(here, "Go.", { allowedTools: ["Agent"] });
  const agents = await sdk.listSubagents(session, { dir: here.work });
  assert.equal(agents.length, 1);
  const said = JSON.stringify(await sdk.getSubagentMessages(session, agents[0], { dir: here.work }));
  assert.ok(said.includes("Inner words."));
  assert.ok(spoken((await here.bodies()).at(-1)).includes("Inner words."));
});

test("a store gets every line and gives them back", async (t) => {
  const here = await at(t, text("One."), text("Two."));
  const sessionStore = new sdk.InMemorySessionStore();
  const session = await idOf(here, "Remember me.", { sessionStore });
  const listed = await sdk.listSessions({ dir: here.work, sessionStore });
  assert.deepEqual(listed.map((info) => info.sessionId), [session]);
  assert.equal(await idOf(here, "Again.", { resume: session, sessionStore }), session);
  assert.ok(spoken((await here.bodies())[1]).includes("Remember me."));
});

test("a store is told at once", async (t) => {
  const here = await at(t, call("Glob", { pattern: "*" }), text("One."));
  const batches = [];
  const sessionStore = new sdk.InMemorySessionStore();
  const append = sessionStore.append.bind(sessionStore);
  sessionStore.append = async (key, entries) => {
    batches.push(entries.map((entry) => entry.type));
    return append(key, entries);
  };
  const order = [];
  for await (const message of here.query("Go.", { sessionStore, sessionStoreFlush: "eager" })) {
    order.push([message.type, batches.flat().includes("assistant")]);
  }
  // The answer is in the store before the turn is over.
  const results = order.filter(([type]) => type === "user");
  assert.ok(batches.length > 1 && results.every(([, isKept]) => isKept), JSON.stringify([order, batches]));
  assert.equal((await here.bodies()).length, 2);
});

test("a store that takes too long is not waited for", async (t) => {
  const here = await at(t, text("One."), text("Never."));
  const sessionStore = new sdk.InMemorySessionStore();
  const session = await idOf(here, "Remember me.", { sessionStore });
  sessionStore.load = () => new Promise(() => {});
  const refused = await here.ask("Again.", { resume: session, sessionStore, loadTimeoutMs: 200 });
  assert.match(String(refused.error), /200/);
  assert.equal((await here.bodies()).length, 1);
});

test("lines are summed up by the SDK as they come", async (t) => {
  const here = await at(t, text("One."));
  const session = await idOf(here, "Remember me.");
  const folder = here.work.replace(/[^A-Za-z0-9]/g, "-");
  const lines = (await readFile(join(here.config, "projects", folder, `${session}.jsonl`), "utf8")).trim().split("\n");
  const key = { projectKey: folder, sessionId: session };
  const summary = lines.reduce((before, line) => sdk.foldSessionSummary(before, key, [JSON.parse(line)]), undefined);
  assert.equal(summary.sessionId, session);
  assert.ok(JSON.stringify(summary).includes("Remember me."));
  assert.ok(spoken((await here.bodies())[0]).includes("Remember me."));
});

test("a record is brought into a store", async (t) => {
  const here = await at(t, text("One."), text("Two."));
  const session = await idOf(here, "Remember me.");
  const sessionStore = new sdk.InMemorySessionStore();
  await sdk.importSessionToStore(session, sessionStore, { dir: here.work });
  await sdk.deleteSession(session, { dir: here.work });
  assert.equal(await idOf(here, "Again.", { resume: session, sessionStore }), session);
  assert.ok(spoken((await here.bodies())[1]).includes("Remember me."));
});

test("a command that is waited for is put aside, and more is said meanwhile", async (t) => {
  const here = await at(t, call("Bash", { command: "touch began; while [ ! -e on ]; do sleep 0.05; done; echo over" }), text("One."), text("Two."));
  const said = prompts();
  const running = here.query(said, { allowedTools: ["Bash"] });
  said.say("Go.");
  const [ends, tasks] = [[], []];
  const putAside = (async () => {
    const about = await running.initializationResult();
    while (!existsSync(join(here.work, "began"))) await new Promise((resolve) => setTimeout(resolve, 20));
    return [about.models.length > 0, await running.backgroundTasks("toolu_of_nobody"), await running.backgroundTasks()];
  })();
  for await (const message of running) {
    if (message.type === "system" && message.subtype.startsWith("task_")) tasks.push(message.subtype);
    if (message.type !== "result") continue;
    ends.push(message.result);
    // It goes on until this is there: so the first result did not wait for it.
    if (ends.length === 1) await writeFile(join(here.work, "on"), "");
    if (ends.length === 2) said.close();
  }
  assert.deepEqual(await putAside, [true, false, true]);
  assert.deepEqual(ends, ["One.", "Two."]);
  assert.deepEqual(tasks, ["task_started", "task_updated", "task_notification"]);
  const bodies = await here.bodies();
  assert.match(spoken(bodies[1]), /goes on in the background/);
  assert.match(spoken(bodies[2]), /completed/);
});

test("what may be asked and changed while a session lasts", async (t) => {
  const here = await at(t, call("Bash", { command: "sleep 60", run_in_background: true }), text("One."), text("Stopped."), text("Two."));
  await writeFile(join(here.work, "notes.txt"), "buy milk");
  const said = prompts();
  const running = here.query(said, { model: "claude-sonnet-4-5", allowedTools: ["Bash"] });
  said.say("Go.");
  const ends = [];
  let task;
  const asked = {};
  for await (const message of running) {
    if (message.type === "system" && message.subtype === "task_started") task = message.task_id;
    if (message.type !== "result") continue;
    ends.push(message);
    if (ends.length === 1) {
      await running.setMaxThinkingTokens(2048);
      asked.file = await running.readFile("notes.txt");
      await running.applyFlagSettings({ permissions: { deny: ["Read"] } });
      asked.denied = await running.readFile("notes.txt");
      asked.usage = await running.getContextUsage();
      asked.again = await running.reinitialize();
      await running.seedReadState("notes.txt", 0);
      asked.servers = await running.setMcpServers({});
      for (const [name, request] of [
        ["reconnect", () => running.reconnectMcpServer("x")],
        ["toggle", () => running.toggleMcpServer("x", true)],
      ]) asked[name] = await request().then(() => "served", (error) => String(error));
      await running.stopTask(task);
    }
    if (ends.length === 2) said.say("More.");
    if (ends.length === 3) said.close();
  }
  assert.deepEqual(ends.map((end) => end.result), ["One.", "Stopped.", "Two."]);
  assert.ok(asked.usage.totalTokens > 0 && asked.again.models.length > 0);
  assert.equal(asked.file.contents, "buy milk");
  assert.equal(asked.denied, null, "what is denied to the model is denied to whoever asks through it");
  assert.deepEqual(asked.servers, { added: [], removed: [], errors: {} });
  assert.match(asked.reconnect, /Server not found: x/);
  assert.match(asked.toggle, /Server not found: x/);
  const bodies = await here.bodies();
  assert.equal(bodies.at(-1).thinking.budget_tokens, 2048);
  assert.ok(spoken(bodies[2]).includes("stopped"));
});

/** Pulls a query; `after` is called with each result. */
async function pull(running, after) {
  const messages = [];
  let ends = 0;
  for await (const message of running) {
    messages.push(message);
    if (message.type === "result") await after((ends += 1), message);
  }
  return messages;
}

test("what was put on the disk meanwhile is looked for again", async (t) => {
  const here = await at(t, text("One."), text("Two."), text("Three."));
  const said = prompts();
  const running = here.query(said, { effort: "high", model: "claude-opus-5-5" });
  const asked = {};
  said.say("Go.");
  const messages = await pull(running, async (ends) => {
    if (ends === 1) {
      asked.before = (await running.supportedCommands()).map((command) => command.name);
      await mkdir(join(here.work, ".claude", "skills", "late"), { recursive: true });
      await writeFile(join(here.work, ".claude", "skills", "late", "SKILL.md"), "---\ndescription: came late\n---\nDo.");
      await mkdir(join(here.work, ".claude", "output-styles"), { recursive: true });
      await writeFile(join(here.work, ".claude", "output-styles", "terse.md"), "---\nname: terse\ndescription: d\n---\nBe terse.");
      asked.skills = (await running.reloadSkills()).skills.map((skill) => skill.name);
      asked.plugins = await running.reloadPlugins({ refuseIfBusy: true, holdOnCacheImpact: true });
      asked.styles = (await running.reloadOutputStyles()).available_output_styles;
      await running.updateSettings("localSettings", { outputStyle: "terse" });
      await running.applyFlagSettings({ effortLevel: "low" });
      said.say("And now?");
    }
    if (ends === 2) {
      asked.after = (await running.supportedCommands()).map((command) => command.name);
      said.close();
    }
  });
  assert.ok(!asked.before.includes("late") && asked.after.includes("late"), "the SDK follows what is told");
  assert.equal(messages.filter((message) => message.subtype === "commands_changed").length, 1);
  assert.deepEqual(asked.skills, ["late"]);
  assert.ok(asked.plugins.commands.some((command) => command.name === "late") && asked.plugins.held === false);
  assert.ok(asked.styles.includes("terse"));
  // It is written for sessions to come.
  await here.ask("Another.", { systemPrompt: { type: "preset", preset: "claude_code" } });
  const bodies = await here.bodies();
  assert.deepEqual(bodies.slice(0, 2).map((body) => body.output_config.effort), ["high", "low"]);
  assert.ok(JSON.stringify(bodies[1].messages).includes("came late"));
  assert.ok(!JSON.stringify(bodies[1].system ?? []).includes("Be terse.") && JSON.stringify(bodies[2]).includes("Be terse."));
});

test("a plugin joins a session that runs", async (t) => {
  const here = await at(t, text("One."), call("Bash", { command: "kit-tool" }), text("Two."));
  const kit = join(here.config, "..", "kit");
  for (const dir of ["commands", "agents", "bin"]) await mkdir(join(kit, dir), { recursive: true });
  await writeFile(join(kit, "commands", "look.md"), "---\ndescription: looks\n---\nLook.");
  await writeFile(join(kit, "agents", "helper.md"), "---\nname: helper\ndescription: helps\n---\nYou help.");
  await writeFile(join(kit, "bin", "kit-tool"), "#!/bin/sh\necho from the kit\n", { mode: 0o755 });
  const said = prompts();
  const running = here.query(said, { allowedTools: ["Bash"] });
  const asked = {};
  said.say("Go.");
  const messages = await pull(running, async (ends) => {
    if (ends === 1) {
      await assert.rejects(running.reloadPlugins({ addPlugins: [{ type: "local", path: "kit" }] }), /whole path/);
      asked.added = await running.reloadPlugins({ addPlugins: [{ type: "local", path: kit }] });
      said.say("Use it.");
    }
    if (ends === 2) said.close();
  });
  assert.deepEqual(asked.added.plugins.map((plugin) => plugin.name), ["kit"]);
  assert.ok(asked.added.commands.some((command) => command.name === "kit:look"));
  assert.ok(asked.added.agents.some((agent) => agent.name === "kit:helper"));
  const inits = messages.filter((message) => message.subtype === "init");
  assert.deepEqual(inits.map((init) => init.agents.includes("kit:helper")), [false, true]);
  const bodies = await here.bodies();
  assert.ok(spoken(bodies[1]).includes("kit:helper: helps") && spoken(bodies[2]).includes("from the kit"));
});

test("prompts that come in streams, and what all of it cost", async (t) => {
  const here = await at(t, text("One."), text("Two."), text("Three."));
  const said = prompts();
  const running = here.query(said);
  const more = async function* () {
    for (const content of ["The second.", "The third."]) yield { type: "user", message: { role: "user", content }, parent_tool_use_id: null };
  };
  let usage;
  said.say("The first.");
  const messages = await pull(running, async (ends, end) => {
    if (ends > 1) return;
    usage = await running.usage_EXPERIMENTAL_MAY_CHANGE_DO_NOT_RELY_ON_THIS_API_YET({ skipBehaviors: true });
    assert.equal(usage.session.total_cost_usd, end.total_cost_usd);
    // Its end is the end of all input.
    await running.streamInput(more());
    said.close();
  });
  assert.equal(usage.rate_limits, null);
  const last = spoken((await here.bodies()).at(-1));
  for (const words of ["The first.", "The second.", "The third."]) assert.ok(last.includes(words), words);
  assert.ok(messages.filter((message) => message.type === "result").every((end) => !end.is_error));
});

test("tools of one server are asked about where nothing else is", async (t) => {
  const forecast = call("mcp__weather__forecast", { city: "Bern" });
  const here = await at(t, forecast, text("One."), forecast, text("Two."), forecast, text("Three."));
  const server = { command: process.execPath, args: [fileURLToPath(new URL("weather-server.js", import.meta.url))] };
  const said = prompts();
  const seen = [];
  const running = here.query(said, {
    mcpServers: { weather: server },
    permissionMode: "bypassPermissions",
    allowDangerouslySkipPermissions: true,
    env: { IS_SANDBOX: "1" },
    canUseTool: async (name) => {
      seen.push(name);
      return { behavior: "deny", message: "Ask me first." };
    },
  });
  const asked = {};
  said.say("Go.");
  await pull(running, async (ends) => {
    if (ends === 1) {
      asked.known = await running.setMcpPermissionModeOverride("weather", "default");
      asked.unknown = await running.setMcpPermissionModeOverride("wether", "auto");
      asked.page = await running.readMcpResource("weather", "ui://weather/today");
      asked.other = await running.readMcpResource("weather", "file:///etc/passwd").catch(String);
    }
    if (ends === 2) await running.setMcpPermissionModeOverride("weather", null);
    if (ends === 3) said.close();
    else said.say("Again.");
  });
  assert.deepEqual(asked.known, {});
  assert.match(asked.unknown.warning, /wether/);
  assert.equal(asked.page.contents[0].text, "<p>Sunny</p>");
  assert.match(asked.other, /ui:\/\/ resources only/);
  assert.deepEqual(seen, ["mcp__weather__forecast"]);
  const results = (await here.bodies()).filter((_, at) => at % 2 === 1).map((body) => JSON.stringify(body.messages.at(-1).content));
  assert.deepEqual(results.map((words) => words.includes("Ask me first.")), [false, true, false]);
});

test("settings mean the same to the SDK and to the session", async (t) => {
  const here = await at(t, call("Bash", { command: "touch made" }), text("One."));
  await mkdir(join(here.work, ".claude"), { recursive: true });
  await writeFile(join(here.config, "settings.json"), JSON.stringify({ permissions: { allow: ["Bash(touch made)"] }, model: "claude-opus-5-5" }));
  await writeFile(join(here.work, ".claude", "settings.json"), JSON.stringify({ model: "claude-sonnet-5-5" }));
  const { effective } = await sdk.resolveSettings({ cwd: here.work });
  const end = result(await here.ask("Go."));
  assert.equal(end.permission_denials.length, 0);
  assert.deepEqual(effective.permissions.allow, ["Bash(touch made)"]);
  assert.equal((await here.bodies())[0].model, effective.model);
});

test("a resume that would forget more than was seen is refused", async (t) => {
  const here = await at(t, text("One."), text("Two."), text("Three."), text("Four."));
  const session = await idOf(here, "The first.");
  await here.ask("The second.", { resume: session });
  const messages = await sdk.getSessionMessages(session, { dir: here.work });
  const [firstAnswer] = messages.filter((message) => message.type === "assistant");
  const second = messages.filter((message) => message.type === "user")[1];
  const back = { resume: session, forkSession: true, resumeSessionAt: firstAnswer.uuid, resumeDropsTurn: second.uuid };
  assert.equal(result(await here.ask("Otherwise.", back)).result, "Three.");
  // Somebody said more in the meantime.
  await here.ask("The third.", { resume: session });
  const refused = await here.ask("Otherwise.", back);
  assert.match(JSON.stringify(refused) + String(refused.error), /Resume rejected by --resume-drops-turn:/);
  const bodies = await here.bodies();
  assert.equal(bodies.length, 4, "nobody was asked");
  assert.ok(spoken(bodies[2]).includes("The first.") && !spoken(bodies[2]).includes("The second."));
});

test("a session that goes on asks the model it asked before, unless the program names one", async (t) => {
  const here = await stage(t, text("Hi.", { always: true }));
  const { session_id } = result(await here.ask("One.", { model: "claude-haiku-4-5" }));
  const settings = { model: "opus" };
  const asked = [];
  for (const more of [{}, { settings }, { forkSession: true }, { model: "claude-sonnet-4-5" }]) {
    const messages = await here.ask("Two.", { resume: session_id, ...more });
    asked.push([system(messages, "init")[0].model, (await here.bodies()).at(-1).model]);
  }
  const haiku = ["claude-haiku-4-5", "claude-haiku-4-5"];
  assert.deepEqual(asked, [haiku, haiku, haiku, ["claude-sonnet-4-5", "claude-sonnet-4-5"]]);
});

test("a session goes on as the agent it worked as", async (t) => {
  const here = await at(t, { reply: "Yes.", always: true });
  const agents = { chief: { description: "Leads.", prompt: "You lead.", tools: ["Read"], model: "claude-haiku-4-5" } };
  const session = await idOf(here, "The first.", { agent: "chief", agents });
  await here.ask("The second.", { agents, resume: session });
  await here.ask("The third.", { agents, continue: true });
  for (const body of await here.bodies()) {
    assert.deepEqual([body.system.at(-1).text, body.model, body.tools.map((tool) => tool.name)], ["You lead.", "claude-haiku-4-5", ["Read"]]);
  }
  const told = system(await here.ask("The fourth.", { resume: session }), "informational");
  assert.equal(told.filter((said) => said.content.includes("'chief'")).length, 1);
  const last = (await here.bodies()).at(-1);
  assert.ok(!JSON.stringify(last.system ?? []).includes("You lead.") && last.tools.length > 1);
  const [listed] = await sdk.listSessions({ dir: here.work });
  assert.equal(listed.firstPrompt, "The first.");
});
