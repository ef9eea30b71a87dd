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

    t.test("thinking, and how much of it", async (t) => {
      const here = await stage(t, { reply: [{ thinking: "Hm." }, { text: "Hi." }] }, text("Hi."), text("Hi."));
      const model = "claude-sonnet-4-5";
      const messages = await hi(here, { model, thinking: { type: "enabled", budgetTokens: 3000 } });
      assert.ok(messages.some((message) => message.type === "assistant" && message.message.content[0].type === "thinking"));
      await hi(here, { model, maxThinkingTokens: 4000 });
      await hi(here, { model, thinking: { type: "disabled" } });
      const budgets = (await here.bodies()).map((body) => body.thinking?.budget_tokens);
      assert.deepEqual(budgets, [3000, 4000, undefined]);
    }),

    t.test("a budget that the model knows of", async (t) => {
      const here = await stage(t, text("Hi."));
      await hi(here, { taskBudget: { total: 20000 } });
      assert.equal((await here.bodies())[0].output_config.task_budget.total, 20000);
    }),

    t.test("settings of the caller, of nobody, and of an administrator", async (t) => {
      const here = await stage(t, ...Array(3).fill([call("Bash", TOUCH), text("Hi.")]).flat());
      await writeFile(join(here.config, "settings.json"), JSON.stringify({ permissions: { allow: ["Bash(touch:*)"] } }));
      const denied = async (options) => result(await hi(here, options)).permission_denials.length;
      const allow = { permissions: { allow: ["Bash(touch made)"] } };
      assert.equal(await denied({ settingSources: [], settings: allow }), 0);
      assert.equal(await denied({ settingSources: [] }), 1);
      assert.equal(await denied({ settingSources: ["user"], managedSettings: { permissions: { deny: ["Bash(touch:*)"] } } }), 1);
      const bodies = await here.bodies();
      assert.deepEqual([1, 3, 5].map((at) => Boolean(answers(bodies[at])[0].is_error)), [false, true, true]);
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

    t.test("a title, and the id of one's own", async (t) => {
      const here = await stage(t, text("Hi."));
      const sessionId = "0f0e0d0c-0b0a-4908-8706-050403020100";
      assert.equal(result(await hi(here, { sessionId, title: "My work" })).session_id, sessionId);
      const { getSessionInfo } = await import("@anthropic-ai/claude-agent-sdk");
      process.env.CLAUDE_CONFIG_DIR = here.config;
      assert.equal((await getSessionInfo(sessionId, { dir: here.work })).customTitle, "My work");
      assert.equal((await here.bodies()).length, 1);
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
      const here = await stage(t, call("Bash", { command: "echo PAYLOAD" }), text("PAYLOAD."), text("Hi."));
      const debugFile = join(here.work, "debug.txt");
      const messages = await here.ask("PAYLOAD?", { debugFile, allowedTools: ["Bash"] });
      const log = await readFile(debugFile, "utf8");
      assert.match(log, /\[tools\] Bash toolu_\S+ starts/);
      assert.match(log, /\[control\] the client asks: initialize/);
      assert.ok(!log.includes("PAYLOAD"), log);
      const { session_id } = result(await here.ask("And now?", { debug: true, resume: result(messages).session_id }));
      assert.match(await readFile(join(here.config, "debug", `${session_id}.txt`), "utf8"), /\[session\] ended: completed/);
      assert.equal((await here.bodies()).length, 3);
    }),

    t.test("arguments of one's own, and only the servers that are named", async (t) => {
      const here = await stage(t, text("Hi."));
      await writeFile(join(here.work, ".mcp.json"), JSON.stringify({ mcpServers: { shared: { command: "true" } } }));
      const messages = await hi(here, { strictMcpConfig: true, extraArgs: { "append-system-prompt": "- Be brief.", "replay-user-messages": null } });
      assert.deepEqual(system(messages, "init")[0].mcp_servers, []);
      assert.ok(messages.some((message) => message.type === "user" && message.isReplay), "the flag without a value counts");
      assert.equal((await here.bodies())[0].system.at(-1).text, "- Be brief.");
    }),

    t.test("a process that the program starts itself", async (t) => {
      const here = await stage(t, text("Hi."));
      const started = [];
      await hi(here, {
        executable: "node",
        executableArgs: [],
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

    t.test("what nobody makes use of hinders nothing", async (t) => {
      const here = await stage(t, text("Hi."));
      const messages = await hi(here, {
        agentProgressSummaries: true,
        onUserDialog: async () => ({ behavior: "cancelled" }),
        supportedDialogKinds: ["refusal_fallback_prompt"],
        onElicitation: async () => ({ action: "decline" }),
      });
      assert.deepEqual(system(messages, "informational"), []);
      assert.equal((await here.bodies()).length, 1);
    }),
  ]);
});
