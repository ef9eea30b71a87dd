// What a program may say when it starts, with the official agent SDK for TypeScript: each option reaches the model or the run.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { createSdkMcpServer, prewarm, startup, tool } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";

import { answers, call, plain, prompts, result, results, stage, system, text } from "./agent.js";

const TOUCH = { command: "touch made" };
const concurrently = { concurrency: 3 };

/** A script that starts the program, and notes how it was started itself. */
async function launcher(here) {
  const script = join(here.config, "launcher.mjs");
  const note = `writeFileSync(${JSON.stringify(join(here.config, "launched.json"))}, JSON.stringify({ argv: process.argv, execArgv: process.execArgv }));`;
  const start = `spawn(${JSON.stringify(process.env.PELTON_BIN)}, process.argv.slice(2), { stdio: "inherit" }).on("close", (code) => process.exit(code));`;
  await writeFile(script, `import { spawn } from "node:child_process";\nimport { writeFileSync } from "node:fs";\n${note}\n${start}\n`);
  return script;
}

/** Asks where the model says no more than this. */
async function hi(here, options) {
  const messages = await here.ask("Go.", options);
  assert.equal(result(messages).result, "Hi.");
  return messages;
}

test("options of the agent SDK", concurrently, async (t) => {
  await Promise.all([
    t.test("a session works as an agent", async (t) => {
      const here = await stage(t, text("Hi."));
      const agents = { reviewer: { description: "Reviews.", prompt: "You review.", tools: ["Read"] } };
      assert.deepEqual(system(await hi(here, { agent: "reviewer", agents }), "init")[0].tools, ["Read"]);
      const body = (await here.bodies())[0];
      assert.ok(JSON.stringify(body.system).includes("You review."));
      assert.deepEqual(body.tools.map((each) => each.name), ["Read"]);
    }),

    t.test("tools that are not wanted vanish", async (t) => {
      const here = await stage(t, text("Hi."));
      assert.ok(!system(await hi(here, { disallowedTools: ["Bash"] }), "init")[0].tools.includes("Bash"));
      assert.ok(!(await here.bodies())[0].tools.some((each) => each.name === "Bash"));
    }),

    t.test("further directories", async (t) => {
      const other = await stage(t, text("unused"));
      await writeFile(join(other.work, "a.txt"), "from elsewhere");
      const here = await stage(t, call("Read", { file_path: join(other.work, "a.txt") }), text("Hi."));
      const messages = await hi(here, { additionalDirectories: [other.work] });
      assert.match(plain(results(messages)[0].content), /from elsewhere/);
      assert.match(JSON.stringify(answers((await here.bodies())[1])), /from elsewhere/);
      assert.equal((await other.bodies()).length, 0);
    }),

    t.test("another model takes over", async (t) => {
      const here = await stage(t, { status: 529, times: 3, when: { model: "opus" } }, text("Hi."));
      const options = { model: "claude-opus-5-5", fallbackModel: "claude-sonnet-5-5", env: { CLAUDE_CODE_MAX_RETRIES: "3" } };
      assert.equal(system(await hi(here, options), "model_fallback")[0].fallback_model, "claude-sonnet-5-5");
      assert.equal((await here.bodies()).at(-1).model, "claude-sonnet-5-5");
    }),

    t.test("betas and the name of the caller go into headers", async (t) => {
      const here = await stage(t, text("Hi."));
      await hi(here, { betas: ["context-1m-2025-08-07"] });
      const { headers } = (await here.requests())[0];
      assert.ok(headers["anthropic-beta"].includes("context-1m-2025-08-07"));
      assert.match(headers["user-agent"], /sdk-ts.*agent-sdk\//);
    }),

    t.test("thinking, or none of it", async (t) => {
      const here = await stage(t, { reply: [{ thinking: "Hm." }, { text: "Hi." }] }, text("Hi."));
      // A model that thinks by a budget.
      const env = { ANTHROPIC_MODEL: "claude-sonnet-4-5" };
      const messages = await hi(here, { env, thinking: { type: "enabled", budgetTokens: 3000 } });
      assert.ok(messages.some((message) => message.type === "assistant" && message.message.content[0].type === "thinking"));
      await hi(here, { env, thinking: { type: "disabled" } });
      const budgets = (await here.bodies()).map((body) => body.thinking?.budget_tokens);
      assert.deepEqual(budgets, [3000, undefined]);
    }),

    t.test("how much thinking, in the older words", async (t) => {
      const here = await stage(t, text("Hi."));
      const messages = await hi(here, { maxThinkingTokens: 4000, env: { ANTHROPIC_MODEL: "claude-sonnet-4-5" } });
      assert.equal(system(messages, "init")[0].model, "claude-sonnet-4-5");
      assert.equal((await here.bodies())[0].thinking.budget_tokens, 4000);
    }),

    t.test("the model is chosen", async (t) => {
      const here = await stage(t, text("Hi."));
      const messages = await hi(here, { model: "claude-opus-5-5" });
      assert.equal(system(messages, "init")[0].model, "claude-opus-5-5");
      assert.deepEqual(Object.keys(result(messages).modelUsage), ["claude-opus-5-5"]);
      assert.equal((await here.bodies())[0].model, "claude-opus-5-5");
    }),

    t.test("how hard the model tries", async (t) => {
      const here = await stage(t, text("Hi."));
      assert.equal(system(await hi(here, { effort: "low" }), "init")[0].effort, "low");
      assert.equal((await here.bodies())[0].output_config.effort, "low");
    }),

    t.test("what is allowed runs unasked, and nothing else does", async (t) => {
      const here = await stage(t, call("Bash", TOUCH), call("Bash", { command: "touch never" }), text("Hi."));
      const messages = await hi(here, { allowedTools: ["Bash(touch made)"] });
      assert.ok(existsSync(join(here.work, "made")) && !existsSync(join(here.work, "never")));
      assert.deepEqual(result(messages).permission_denials.map((denial) => denial.tool_input.command), ["touch never"]);
      const bodies = await here.bodies();
      assert.deepEqual([1, 2].map((at) => Boolean(answers(bodies[at])[0].is_error)), [false, true]);
    }),

    t.test("edits are made unasked", async (t) => {
      const here = await stage(t, call("Write", { file_path: "a.txt", content: "new" }), call("Bash", { command: "make" }), text("Hi."));
      const messages = await hi(here, { permissionMode: "acceptEdits" });
      assert.equal(system(messages, "init")[0].permissionMode, "acceptEdits");
      assert.equal(await readFile(join(here.work, "a.txt"), "utf8"), "new");
      assert.deepEqual(result(messages).permission_denials.map((denial) => denial.tool_name), ["Bash"]);
      assert.equal(answers((await here.bodies())[2])[0].is_error, true);
    }),

    t.test("an agent of the program does a task", async (t) => {
      const order = { description: "look", prompt: "Look around.", subagent_type: "scout" };
      const inner = { reply: [{ tool: "Glob", input: { pattern: "*" } }], when: { last_user_text: "Look around" } };
      const here = await stage(t, inner, call("Agent", order), text("Nothing there."), text("Hi."));
      const agents = { scout: { description: "Scouts.", prompt: "You scout.", tools: ["Glob"] } };
      const messages = await hi(here, { agents });
      const [started] = system(messages, "task_started");
      const [progress] = system(messages, "task_progress");
      const [over] = system(messages, "task_notification");
      assert.deepEqual([started.subagent_type, started.prompt, started.task_type], ["scout", "Look around.", "local_agent"]);
      assert.deepEqual([progress.task_id, progress.tool_use_id, progress.last_tool_name], [started.task_id, started.tool_use_id, "Glob"]);
      assert.ok(progress.usage.tool_uses === 1 && progress.usage.total_tokens > 0 && progress.usage.duration_ms >= 0);
      assert.deepEqual([over.task_id, over.status], [started.task_id, "completed"]);
      const [, asked] = await here.bodies();
      assert.ok(JSON.stringify(asked.system).includes("You scout."));
      assert.deepEqual(asked.tools.map((each) => each.name), ["Glob"]);
    }),

    t.test("where it works", async (t) => {
      const here = await stage(t, call("Glob", { pattern: "*.txt" }), text("Hi."));
      const cwd = join(here.work, "below");
      await mkdir(cwd);
      await writeFile(join(cwd, "deep.txt"), "");
      await writeFile(join(here.work, "above.txt"), "");
      assert.equal(system(await hi(here, { cwd }), "init")[0].cwd, cwd);
      const found = plain(answers((await here.bodies())[1])[0].content);
      assert.ok(found.includes("deep.txt") && !found.includes("above.txt"), found);
    }),

    t.test("variables reach commands, and the caller's own do not", async (t) => {
      const here = await stage(t, call("Bash", { command: "echo [$WHEEL][$PELTON_BIN]" }), text("Hi."));
      const messages = await hi(here, { env: { WHEEL: "turns" }, permissionMode: "dontAsk", settings: { permissions: { allow: ["Bash"] } } });
      assert.equal(plain(results(messages)[0].content), "[turns][]");
      assert.equal(plain(answers((await here.bodies())[1])[0].content), "[turns][]");
    }),

    t.test("what goes wrong is told on the side", async (t) => {
      const here = await stage(t, text("Hi."));
      await mkdir(join(here.work, ".claude"));
      await writeFile(join(here.work, ".claude", "settings.json"), "{ no settings");
      const told = [];
      await hi(here, { stderr: (words) => told.push(words) });
      assert.match(told.join(""), /settings\.json/);
      assert.equal((await here.bodies()).length, 1);
    }),

    t.test("a program that is not there", async (t) => {
      const here = await stage(t, text("Hi."));
      const messages = await here.ask("Go.", { pathToClaudeCodeExecutable: join(here.work, "no-such-program") });
      assert.match(String(messages.error), /no-such-program/);
      assert.deepEqual([messages.length, await here.bodies()], [0, []]);
    }),

    t.test("a question of a server inside the program is answered by the program", async (t) => {
      const here = await stage(t, call("mcp__shop__order", {}), text("Hi."));
      const order = tool("order", "Orders.", {}, async () => {
        const requestedSchema = { type: "object", properties: { size: { type: "string" } }, required: ["size"] };
        const said = await shop.instance.server.elicitInput({ message: "Which size?", requestedSchema });
        return { content: [{ type: "text", text: `${said.action} ${said.content?.size}` }] };
      });
      const shop = createSdkMcpServer({ name: "shop", tools: [order] });
      const asked = [];
      const onElicitation = async (request) => {
        asked.push([request.serverName, request.message]);
        return { action: "accept", content: { size: "XL" } };
      };
      const messages = await hi(here, { mcpServers: { shop }, allowedTools: ["mcp__shop"], onElicitation });
      assert.deepEqual(asked, [["shop", "Which size?"]]);
      assert.equal(plain(results(messages)[0].content), "accept XL");
      assert.equal(plain(answers((await here.bodies())[1])[0].content), "accept XL");
    }),

    t.test("a budget that the model knows of", async (t) => {
      const here = await stage(t, text("Hi."));
      await hi(here, { taskBudget: { total: 20000 } });
      assert.equal((await here.bodies())[0].output_config.task_budget.total, 20000);
    }),

    t.test("settings of the caller", async (t) => {
      const here = await stage(t, call("Bash", TOUCH), text("Hi."));
      const messages = await hi(here, { settings: { permissions: { allow: ["Bash(touch made)"] } } });
      assert.equal(result(messages).permission_denials.length, 0);
      assert.ok(!answers((await here.bodies())[1])[0].is_error);
    }),

    t.test("settings of nobody", async (t) => {
      const here = await stage(t, ...Array(2).fill([call("Bash", TOUCH), text("Hi.")]).flat());
      await writeFile(join(here.config, "settings.json"), JSON.stringify({ permissions: { allow: ["Bash(touch:*)"] } }));
      await writeFile(join(here.work, "CLAUDE.md"), "Speak of wheels.");
      const denied = async (settingSources) => result(await hi(here, { settingSources })).permission_denials.length;
      assert.deepEqual([await denied(["user", "project"]), await denied([])], [0, 1]);
      const bodies = await here.bodies();
      assert.deepEqual([0, 2].map((at) => JSON.stringify(bodies[at].messages).includes("Speak of wheels.")), [true, false]);
    }),

    t.test("settings of an administrator", async (t) => {
      const here = await stage(t, call("Bash", TOUCH), text("Hi."));
      await writeFile(join(here.config, "settings.json"), JSON.stringify({ permissions: { allow: ["Bash(touch:*)"] } }));
      const messages = await hi(here, { managedSettings: { permissions: { deny: ["Bash(touch:*)"] } } });
      assert.equal(result(messages).permission_denials.length, 1);
      assert.equal(answers((await here.bodies())[1])[0].is_error, true);
    }),

    t.test("nobody answers questions", async (t) => {
      const here = await stage(t, call("Bash", TOUCH), text("Hi."));
      const messages = await hi(here, { permissionPrompts: "none" });
      assert.equal(result(messages).permission_denials[0].tool_name, "Bash");
      assert.ok(!(await here.bodies())[0].tools.some((each) => each.name === "AskUserQuestion"));
    }),

    t.test("a tool of the program answers questions", async (t) => {
      const here = await stage(t, call("Bash", TOUCH), text("Hi."));
      const seen = [];
      const decide = tool("decide", "Decides.", { tool_name: z.string(), input: z.any() }, async (given) => {
        seen.push(given.tool_name);
        return { content: [{ type: "text", text: JSON.stringify({ behavior: "allow", updatedInput: given.input }) }] };
      });
      const mcpServers = { guard: createSdkMcpServer({ name: "guard", tools: [decide] }) };
      const messages = await hi(here, { mcpServers, permissionPromptToolName: "mcp__guard__decide" });
      assert.ok(existsSync(join(here.work, "made")) && seen[0] === "Bash");
      assert.equal(result(messages).permission_denials.length, 0);
      assert.ok(!answers((await here.bodies())[1])[0].is_error);
    }),

    t.test("without permissions, where that is allowed", async (t) => {
      const here = await stage(t, call("Bash", TOUCH), text("Hi."));
      const options = { permissionMode: "bypassPermissions", allowDangerouslySkipPermissions: true, env: { IS_SANDBOX: "1" } };
      assert.equal(system(await hi(here, options), "init")[0].permissionMode, "bypassPermissions");
      assert.ok(existsSync(join(here.work, "made")) && !answers((await here.bodies())[1])[0].is_error);
    }),

    t.test("what agents say is forwarded", async (t) => {
      const order = { description: "say", prompt: "Say it.", subagent_type: "general-purpose" };
      const here = await stage(t, { reply: [{ text: "Inner words." }], when: { last_user_text: "Say it" } }, call("Agent", order), text("Hi."));
      const messages = await hi(here, { forwardSubagentText: true, allowedTools: ["Agent"] });
      const inner = messages.filter((message) => message.type === "assistant" && message.parent_tool_use_id);
      assert.ok(inner.some((message) => message.message.content.some((block) => block.text === "Inner words.")));
      assert.ok(JSON.stringify(answers((await here.bodies()).at(-1))).includes("Inner words."));
    }),

    t.test("what hooks of programs do is told in pairs", async (t) => {
      const here = await stage(t, call("Glob", { pattern: "*" }), text("Hi."));
      const command = { type: "command", command: "echo seen" };
      const settings = { hooks: { PreToolUse: [{ matcher: "Glob", hooks: [command] }] } };
      const messages = await hi(here, { includeHookEvents: true, settings });
      const [started] = system(messages, "hook_started");
      const [response] = system(messages, "hook_response");
      assert.equal(started.hook_id, response.hook_id);
      assert.deepEqual([started.hook_event, response.outcome, response.stdout], ["PreToolUse", "success", "seen\n"]);
      assert.ok(!JSON.stringify((await here.bodies())[1].messages).includes("seen"));
    }),

    t.test("prompts that mean what they say", async (t) => {
      const here = await stage(t, text("Hi."));
      await writeFile(join(here.work, "notes.txt"), "buy milk");
      const messages = await here.ask("/look @notes.txt", { verbatimPrompts: true });
      assert.equal(result(messages).result, "Hi.");
      const body = (await here.bodies())[0];
      assert.equal(body.messages.at(-1).content.at(-1).text, "/look @notes.txt");
      assert.ok(!JSON.stringify(body.messages).includes("buy milk"));
    }),

    t.test("a box around commands", async (t) => {
      const here = await stage(t, call("Bash", { command: "touch inside ../outside; echo done" }), text("Hi."));
      const messages = await hi(here, { sandbox: { enabled: true, autoAllowBashIfSandboxed: true } });
      if (here.stderr.join("").includes("sandbox")) return t.skip("no sandbox on this machine");
      assert.equal(result(messages).permission_denials.length, 0);
      assert.ok(existsSync(join(here.work, "inside")) && !existsSync(join(here.work, "..", "outside")));
      assert.match(JSON.stringify(answers((await here.bodies())[1])), /done/);
    }),

    t.test("the checkout that is trusted configures a session in another", async (t) => {
      const here = await stage(t, call("Bash", TOUCH), text("Hi."));
      const trusted = join(here.config, "trusted");
      for (const [root, name] of [[trusted, "kept"], [here.work, "brought"]]) {
        await mkdir(join(root, ".claude", "skills", name), { recursive: true });
        await writeFile(join(root, ".claude", "skills", name, "SKILL.md"), `---\ndescription: the ${name} one\n---\nDo.`);
      }
      // What the branch carries would forbid it.
      await writeFile(join(here.work, ".claude", "settings.json"), JSON.stringify({ permissions: { deny: ["Bash"] } }));
      const messages = await hi(here, { projectConfigRoot: trusted, allowedTools: ["Bash(touch made)"] });
      assert.deepEqual([system(messages, "init")[0].cwd, system(messages, "init")[0].skills], [here.work, ["kept"]]);
      assert.equal(result(messages).permission_denials.length, 0);
      const bodies = await here.bodies();
      assert.ok(!answers(bodies[1])[0].is_error);
      assert.ok(JSON.stringify(bodies[0].messages).includes("the kept one") && !JSON.stringify(bodies[0]).includes("the brought one"));
    }),

    t.test("servers that are named in the first words instead of on the command line", async (t) => {
      const here = await stage(t, call("mcp__weather__forecast", { city: "Bern" }), text("Hi."));
      const server = fileURLToPath(new URL("weather-server.js", import.meta.url));
      const mcpServers = { weather: { command: process.execPath, args: [server], env: { DEGREES: "301" } } };
      const started = [];
      const messages = await hi(here, {
        mcpServers,
        mcpServersDelivery: "initialize",
        allowedTools: ["mcp__weather"],
        spawnClaudeCodeProcess: ({ command, args, cwd, env, signal }) => {
          started.push(args.join(" "));
          return spawn(command, args, { cwd, env, signal, stdio: ["pipe", "pipe", "ignore"] });
        },
      });
      assert.ok(!started[0].includes("DEGREES"), "what is secret is on no command line");
      assert.equal(plain(results(messages)[0].content), "Bern: 301 K");
      assert.equal(plain(answers((await here.bodies())[1])[0].content), "Bern: 301 K");
    }),

    t.test("an id of one's own", async (t) => {
      const here = await stage(t, text("Hi."));
      const sessionId = "0f0e0d0c-0b0a-4908-8706-050403020100";
      assert.equal(result(await hi(here, { sessionId })).session_id, sessionId);
      assert.equal((await here.bodies()).length, 1);
      const again = await here.ask("Again.", { sessionId });
      assert.match(JSON.stringify(again) + String(again.error), /exists already/);
      assert.equal((await here.bodies()).length, 1, "whose id it is goes on by resume alone");
    }),

    t.test("a plugin that is named on the command line", async (t) => {
      const here = await stage(t, text("Hi."));
      const kit = join(here.work, "kit");
      await mkdir(join(kit, "skills", "bake"), { recursive: true });
      await writeFile(join(kit, "skills", "bake", "SKILL.md"), "---\ndescription: bakes bread\n---\nBake.");
      const [init] = system(await hi(here, { plugins: [{ type: "local", path: kit }] }), "init");
      assert.deepEqual([init.plugins.map((plugin) => plugin.name), init.skills], [["kit"], ["kit:bake"]]);
      assert.ok(JSON.stringify((await here.bodies())[0].messages).includes("bakes bread"));
    }),

    t.test("plugins that are named in the first words instead of on the command line", async (t) => {
      const here = await stage(t, text("Hi."));
      const kit = join(here.work, "kit");
      await mkdir(join(kit, "commands"), { recursive: true });
      await writeFile(join(kit, "commands", "look.md"), "Look at $ARGUMENTS.");
      const messages = await hi(here, { plugins: [{ type: "local", path: kit }], pluginDelivery: "initialize" });
      const [init] = system(messages, "init");
      assert.deepEqual(init.plugins.map((plugin) => plugin.name), ["kit"]);
      assert.ok(init.slash_commands.includes("kit:look"), init.slash_commands.join());
      assert.equal((await here.bodies()).length, 1);
    }),

    t.test("a guess of the next prompt comes behind the result", async (t) => {
      const guess = text("run the tests", { when: { model: "haiku" }, always: true });
      const here = await stage(t, guess, text("First."), text("Shall I test it?"));
      const said = prompts();
      said.say("One.");
      const seen = [];
      for await (const message of here.query(said, { promptSuggestions: true })) {
        if (message.type === "result" && seen.filter((each) => each.type === "result").length === 0) said.say("Two.");
        seen.push(message);
        if (message.type === "prompt_suggestion") said.close();
      }
      const types = seen.map((message) => message.type).filter((type) => ["result", "prompt_suggestion"].includes(type));
      assert.deepEqual(types, ["result", "result", "prompt_suggestion"]);
      assert.equal(seen.find((message) => message.type === "prompt_suggestion").suggestion, "run the tests");
      const bodies = await here.bodies();
      assert.deepEqual(bodies.map((body) => body.model.includes("haiku")), [false, false, true]);
      assert.match(JSON.stringify(bodies[2].messages), /Shall I test it\?/);
    }),

    t.test("what happens inside is noted in a file, and what is said is not", async (t) => {
      const here = await stage(t, call("Bash", { command: "echo PAYLOAD" }), text("PAYLOAD."));
      const debugFile = join(here.work, "debug.txt");
      await here.ask("PAYLOAD?", { debugFile, allowedTools: ["Bash"] });
      const log = await readFile(debugFile, "utf8");
      assert.match(log, /\[tools\] Bash toolu_\S+ starts/);
      assert.match(log, /\[control\] the client asks: initialize/);
      assert.ok(!log.includes("PAYLOAD"), log);
      assert.equal((await here.bodies()).length, 2);
    }),

    t.test("what happens inside is noted where the session's own file is", async (t) => {
      const here = await stage(t, text("Hi."));
      const { session_id } = result(await hi(here, { debug: true }));
      assert.match(await readFile(join(here.config, "debug", `${session_id}.txt`), "utf8"), /\[session\] ended: completed/);
      assert.equal((await here.bodies()).length, 1);
    }),

    t.test("arguments of one's own", async (t) => {
      const here = await stage(t, text("Hi."));
      const messages = await hi(here, { extraArgs: { "append-system-prompt": "- Be brief.", "replay-user-messages": null } });
      assert.ok(messages.some((message) => message.type === "user" && message.isReplay), "the flag without a value counts");
      assert.equal((await here.bodies())[0].system.at(-1).text, "- Be brief.");
    }),

    t.test("only the servers that are named", async (t) => {
      const here = await stage(t, text("Hi."));
      await writeFile(join(here.work, ".mcp.json"), JSON.stringify({ mcpServers: { shared: { command: "true" } } }));
      assert.deepEqual(system(await hi(here, { strictMcpConfig: true }), "init")[0].mcp_servers, []);
      assert.ok(!(await here.bodies())[0].tools.some((each) => each.name.startsWith("mcp__")));
    }),

    t.test("a script that starts the program, and who runs it", async (t) => {
      const here = await stage(t, text("Hi."));
      await hi(here, { pathToClaudeCodeExecutable: await launcher(here), executable: "node" });
      const { argv } = JSON.parse(await readFile(join(here.config, "launched.json"), "utf8"));
      assert.match(argv[0], /node$/);
      assert.equal((await here.bodies()).length, 1);
    }),

    t.test("words for whoever runs the script", async (t) => {
      const here = await stage(t, text("Hi."));
      await hi(here, { pathToClaudeCodeExecutable: await launcher(here), executableArgs: ["--title=wheel"] });
      assert.deepEqual(JSON.parse(await readFile(join(here.config, "launched.json"), "utf8")).execArgv, ["--title=wheel"]);
      assert.equal((await here.bodies()).length, 1);
    }),

    t.test("a process that the program starts itself", async (t) => {
      const here = await stage(t, text("Hi."));
      const started = [];
      await hi(here, {
        spawnClaudeCodeProcess: ({ command, args, cwd, env, signal }) => {
          started.push(command);
          return spawn(command, args, { cwd, env, signal, stdio: ["pipe", "pipe", "ignore"] });
        },
      });
      assert.deepEqual(started, [process.env.PELTON_BIN]);
      assert.equal((await here.bodies()).length, 1);
    }),

    t.test("a process that is started before there is a prompt", async (t) => {
      const here = await stage(t, text("Hi."));
      const warm = await startup({ options: here.options() });
      const messages = [];
      for await (const message of warm.query("Go.")) messages.push(message);
      assert.equal(result(messages).result, "Hi.");
      assert.equal((await here.bodies())[0].messages.at(-1).content.at(-1).text, "Go.");
    }),

    t.test("a process that is started before there is a session", async (t) => {
      const here = await stage(t, text("Hi."));
      const project = join(here.work, "project");
      await mkdir(project);
      const spare = await prewarm({ options: { ...here.options({ systemPrompt: "You bake." }), cwd: here.config } });
      const messages = [];
      const running = spare.claim({ prompt: "Go.", options: { cwd: project, model: "claude-opus-5-5", permissionMode: "plan", title: "Jars", settings: { effortLevel: "low" } } });
      const about = await running.initializationResult();
      for await (const message of running) messages.push(message);
      const { cwd, sessionId } = await spare.claimed;
      assert.deepEqual([cwd, sessionId], [project, result(messages).session_id]);
      const [init] = system(messages, "init");
      assert.deepEqual([init.cwd, init.permissionMode], [project, "plan"]);
      assert.ok(about.commands.some((command) => command.name === "compact"));
      const [body] = await here.bodies();
      assert.deepEqual([body.model, body.output_config.effort], ["claude-opus-5-5", "low"]);
      assert.ok(JSON.stringify(body.system).includes("You bake."));
    }),

    t.test("questions may show what options look like as a page", async (t) => {
      const here = await stage(t, text("Hi."));
      const canUseTool = async (name, input) => ({ behavior: "allow", updatedInput: input });
      await hi(here, { canUseTool, toolConfig: { askUserQuestion: { previewFormat: "html" } } });
      const asks = (await here.bodies())[0].tools.find((each) => each.name === "AskUserQuestion");
      assert.match(asks.description, /HTML/);
    }),

    t.test("one tool of a server inside the program never runs, and one is always asked about", async (t) => {
      const steps = ["drop", "keep", "look"].map((name) => call(`mcp__shelf__${name}`, {}));
      const here = await stage(t, ...steps, text("Hi."));
      const ran = [];
      const tools = ["drop", "keep", "look"].map((name) =>
        tool(name, name, {}, async () => {
          ran.push(name);
          return { content: [{ type: "text", text: name }] };
        }),
      );
      const shelf = createSdkMcpServer({ name: "shelf", tools });
      shelf.tools = [
        { name: "drop", permission_policy: "always_deny" },
        { name: "keep", permission_policy: "always_ask" },
      ];
      const asked = [];
      const canUseTool = async (name, input) => {
        asked.push(name);
        return { behavior: "allow", updatedInput: input };
      };
      const messages = await hi(here, { mcpServers: { shelf }, allowedTools: ["mcp__shelf"], canUseTool });
      assert.deepEqual([ran, asked], [["keep", "look"], ["mcp__shelf__keep"]]);
      assert.deepEqual(results(messages).map((each) => each.is_error ?? false), [true, false, false]);
      const calls = messages.filter((message) => message.tool_use_meta);
      assert.deepEqual(calls.map((message) => message.tool_use_meta[0].display_name), ["drop", "keep", "look"]);
      assert.equal(calls[0].tool_use_meta[0].server_display_name, "shelf");
      assert.ok((await here.bodies()).length >= 4);
    }),

    t.test("agents outlive an interrupt where they can be stopped one by one", async (t) => {
      const order = { description: "dig", prompt: "Dig.", subagent_type: "general-purpose", run_in_background: true };
      const inner = { reply: [{ pause_ms: 700 }, { text: "Gold." }], when: { last_user_text: "Dig." } };
      const here = await stage(t, inner, call("Agent", order), text("It digs."), text("Hi."));
      const said = prompts();
      const running = here.query(said, { perTaskStopAffordance: true, allowedTools: ["Agent"] });
      const ends = [];
      const outcomes = [];
      said.say("Go.");
      for await (const message of running) {
        if (message.type === "system" && message.subtype === "task_notification") outcomes.push(message.status);
        if (message.type !== "result") continue;
        ends.push(message.result);
        if (ends.length === 1) await running.interrupt();
        else said.close();
      }
      assert.deepEqual([ends, outcomes], [["It digs.", "Hi."], ["completed"]]);
      assert.match(JSON.stringify((await here.bodies()).at(-1).messages.at(-1)), /Gold\./);
    }),

    // No dialog is ever wanted of the program (docs/decisions/121): what it says about them hinders nothing, also where another
    // process would show one.
    t.test("dialogs that the program could show", async (t) => {
      const here = await stage(t, { reply: [{ text: "No." }], stop: "refusal" });
      const dialogs = [];
      const onUserDialog = async (request) => {
        dialogs.push(request);
        return { behavior: "cancelled" };
      };
      const messages = await here.ask("Go.", { onUserDialog });
      assert.equal(result(messages).stop_reason, "refusal");
      assert.equal(system(messages, "model_refusal_no_fallback").length, 1);
      assert.deepEqual([dialogs, (await here.bodies()).length], [[], 1]);
    }),

    t.test("kinds of dialogs that the program knows", async (t) => {
      const here = await stage(t, text("Hi."));
      const supportedDialogKinds = ["refusal_fallback_prompt", "of-the-future"];
      const messages = await hi(here, { supportedDialogKinds, onUserDialog: async () => assert.fail("nobody asks") });
      assert.deepEqual(system(messages, "informational"), []);
      assert.equal((await here.bodies()).length, 1);
    }),
  ]);
});
