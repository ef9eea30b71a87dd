// The official agent SDK for TypeScript drives Pelton.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";

import { createSdkMcpServer, SYSTEM_PROMPT_DYNAMIC_BOUNDARY, tool } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";

import { answers, call, plain, prompts, result, results, stage, system, text } from "./agent.js";

const TOUCH = { command: "touch made" };
const concurrently = { concurrency: 3 };

test("the agent SDK", concurrently, async (t) => {
  await Promise.all([
    t.test("a question is answered", async (t) => {
      const here = await stage(t, text("Four."));
      const messages = await here.ask("What is two and two?");
      assert.equal(result(messages).result, "Four.");
      assert.equal(system(messages, "init")[0].cwd, here.work);
      assert.equal(messages.error, undefined);
      const body = (await here.bodies())[0];
      assert.equal(body.messages.at(-1).content.at(-1).text, "What is two and two?");
      assert.deepEqual(body.system ?? [], []);
    }),

    t.test("the system prompt comes with the first words", async (t) => {
      const here = await stage(t, text("Hi."), text("Hi."), text("Hi."));
      const inParts = ["You are a baker.", SYSTEM_PROMPT_DYNAMIC_BOUNDARY, "It is Monday."];
      const systemPrompts = ["You are a pirate.", { type: "preset", preset: "claude_code", append: "Be brief." }, inParts];
      for (const systemPrompt of systemPrompts) assert.equal(result(await here.ask("Go.", { systemPrompt })).result, "Hi.");
      const [custom, preset, parts] = await here.bodies();
      assert.equal(parts.system.map((block) => block.text).join("\n\n"), "You are a baker.\n\nIt is Monday.");
      assert.deepEqual(custom.system.map((block) => block.text), ["You are a pirate."]);
      assert.equal(preset.system.at(-1).text, "Be brief.");
      assert.ok(preset.system.length > 1);
    }),

    t.test("tools are chosen", async (t) => {
      const here = await stage(t, text("Hi."));
      const [init] = system(await here.ask("Go.", { tools: ["Read", "Glob"] }), "init");
      assert.deepEqual(init.tools.toSorted(), ["Glob", "Read"]);
      assert.deepEqual((await here.bodies())[0].tools.map((each) => each.name).sort(), ["Glob", "Read"]);
    }),

    t.test("a permission is asked for, changed and given", async (t) => {
      const here = await stage(t, call("Bash", TOUCH), text("Done."));
      const seen = [];
      const canUseTool = async (name, input, { suggestions, toolUseID }) => {
        seen.push([name, input, suggestions.length > 0, typeof toolUseID]);
        return { behavior: "allow", updatedInput: { command: "touch other" } };
      };
      const messages = await here.ask("Go.", { canUseTool });
      assert.deepEqual(seen, [["Bash", TOUCH, true, "string"]]);
      assert.ok(existsSync(join(here.work, "other")) && !existsSync(join(here.work, "made")));
      assert.equal(result(messages).is_error, false);
      assert.ok(!answers((await here.bodies())[1])[0].is_error);
    }),

    t.test("a refusal is read by the model", async (t) => {
      const here = await stage(t, call("Bash", TOUCH), text("Then not."));
      const canUseTool = async () => ({ behavior: "deny", message: "Not today." });
      const messages = await here.ask("Go.", { canUseTool });
      assert.equal(plain(results(messages)[0].content), "Not today.");
      assert.equal(result(messages).permission_denials[0].tool_name, "Bash");
      assert.equal(plain(answers((await here.bodies())[1])[0].content), "Not today.");
    }),

    t.test("hooks are called before and after", async (t) => {
      const here = await stage(t, call("Bash", TOUCH), text("Done."));
      const seen = [];
      const note = async (input) => {
        seen.push(input.hook_event_name);
        return {};
      };
      const hooks = Object.fromEntries(
        ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"].map((event) => [event, [{ hooks: [note] }]]),
      );
      assert.equal(result(await here.ask("Go.", { hooks, allowedTools: ["Bash"] })).result, "Done.");
      assert.equal((await here.bodies()).length, 2);
      assert.deepEqual(seen, ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"]);
    }),

    t.test("a hook refuses a call", async (t) => {
      const here = await stage(t, call("Bash", TOUCH), text("Then not."));
      const refuse = async () => ({
        hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "deny", permissionDecisionReason: "Not with me." },
      });
      const messages = await here.ask("Go.", { hooks: { PreToolUse: [{ matcher: "Bash", hooks: [refuse] }] }, allowedTools: ["Bash"] });
      assert.equal(plain(results(messages)[0].content), "Not with me.");
      assert.equal(answers((await here.bodies())[1])[0].is_error, true);
    }),

    t.test("tools of the program are called", async (t) => {
      const here = await stage(t, call("mcp__calc__add", { a: 1, b: 2 }), text("Three."));
      const add = tool("add", "Adds.", { a: z.number(), b: z.number() }, async ({ a, b }) => ({
        content: [{ type: "text", text: String(a + b) }],
      }));
      const mcpServers = { calc: createSdkMcpServer({ name: "calc", version: "1.0.0", tools: [add] }) };
      const messages = await here.ask("Go.", { mcpServers, allowedTools: ["mcp__calc__add"] });
      assert.equal(plain(results(messages)[0].content), "3");
      assert.deepEqual(system(messages, "init")[0].mcp_servers, [{ name: "calc", status: "connected", source: "sdk" }]);
      const [first, second] = await here.bodies();
      assert.ok(first.tools.some((each) => each.name === "mcp__calc__add"));
      assert.equal(plain(answers(second)[0].content), "3");
    }),

    t.test("a tool of the program that throws is an error", async (t) => {
      const here = await stage(t, call("mcp__x__fail", {}), text("Oh."));
      const fail = tool("fail", "Fails.", {}, async () => {
        throw new Error("exploded");
      });
      const mcpServers = { x: createSdkMcpServer({ name: "x", tools: [fail] }) };
      const messages = await here.ask("Go.", { mcpServers, allowedTools: ["mcp__x__fail"] });
      assert.equal(results(messages)[0].is_error, true);
      assert.match(plain(results(messages)[0].content), /exploded/);
      assert.equal(answers((await here.bodies())[1])[0].is_error, true);
    }),

    t.test("a tool of the program takes the place of one of ours", async (t) => {
      const here = await stage(t, call("Bash", { a: 20 }), text("Done."));
      const double = tool("double", "Doubles.", { a: z.number() }, async ({ a }) => ({ content: [{ type: "text", text: String(2 * a) }] }));
      const mcpServers = { calc: createSdkMcpServer({ name: "calc", version: "1.0.0", tools: [double] }) };
      const messages = await here.ask("Go.", {
        mcpServers,
        allowedTools: ["mcp__calc__double"],
        toolAliases: { Bash: "mcp__calc__double" },
      });
      assert.equal(plain(results(messages)[0].content), "40");
      assert.ok(JSON.stringify((await here.bodies())[1].messages).includes("40"));
    }),

    t.test("planning follows the program's own way", async (t) => {
      const here = await stage(t, text("Planned."));
      const messages = await here.ask("Go.", { permissionMode: "plan", planModeInstructions: "Draw a map first.", canUseTool: async () => ({ behavior: "deny", message: "no" }) });
      const said = JSON.stringify((await here.bodies())[0].messages);
      assert.ok(said.includes("Draw a map first.") && said.includes("ExitPlanMode"));
      assert.equal(system(messages, "init")[0].permissionMode, "plan");
    }),

    t.test("only the skills that are named are there", async (t) => {
      const here = await stage(t, text("Hi."));
      for (const name of ["wanted", "other"]) {
        await mkdir(join(here.config, "skills", name), { recursive: true });
        await writeFile(join(here.config, "skills", name, "SKILL.md"), `---\ndescription: the ${name} one\n---\nDo.`);
      }
      const messages = await here.ask("Go.", { skills: ["wanted"] });
      assert.deepEqual(system(messages, "init")[0].skills, ["wanted"]);
      const said = JSON.stringify((await here.bodies())[0].messages);
      assert.ok(said.includes("the wanted one") && !said.includes("the other one"));
    }),

    t.test("the prompt in front is the same for every user", async (t) => {
      const here = await stage(t, text("Hi."));
      const systemPrompt = { type: "preset", preset: "claude_code", excludeDynamicSections: true };
      assert.equal(result(await here.ask("Go.", { systemPrompt })).result, "Hi.");
      const body = (await here.bodies())[0];
      assert.ok(!JSON.stringify(body.system).includes(here.work) && !JSON.stringify(body.system).includes(here.config));
      assert.ok(JSON.stringify(body.messages).includes(here.work));
    }),

    t.test("turns share a session, and it changes in between", async (t) => {
      const here = await stage(t, text("1"), text("2"));
      const said = prompts();
      const running = here.query(said, { model: "claude-sonnet-5-5" });
      const ends = [];
      said.say("one");
      for await (const message of running) {
        if (message.type !== "result") continue;
        ends.push(message);
        if (ends.length === 2) said.close();
        else {
          await running.setModel("claude-opus-5-5");
          await running.setPermissionMode("acceptEdits");
          said.say("two");
        }
      }
      assert.deepEqual(ends.map((end) => end.result), ["1", "2"]);
      assert.equal(ends[0].session_id, ends[1].session_id);
      assert.deepEqual((await here.bodies()).map((body) => body.model), ["claude-sonnet-5-5", "claude-opus-5-5"]);
    }),

    t.test("an interrupt ends a turn", async (t) => {
      const here = await stage(t, call("Bash", { command: "sleep 60" }), text("Better."));
      const said = prompts();
      const running = here.query(said, { allowedTools: ["Bash"] });
      const ends = [];
      said.say("Go.");
      for await (const message of running) {
        if (message.type === "assistant" && ends.length === 0) await running.interrupt();
        if (message.type !== "result") continue;
        ends.push(message);
        if (ends.length === 2) said.close();
        else said.say("And now?");
      }
      assert.equal(ends[0].subtype, "error_during_execution");
      assert.equal(ends[1].result, "Better.");
      assert.ok(JSON.stringify((await here.bodies())[1].messages).includes("[Request interrupted by user"));
    }),

    t.test("what was said until an interrupt is told, and that it was cut", async (t) => {
      const pause = { reply: [{ text: "one two three four", fragments: 4, after: { 1: { pause_ms: 20000 } } }] };
      const here = await stage(t, pause, text("Five."));
      const said = prompts();
      const running = here.query(said, { includePartialMessages: true });
      const words = [];
      let ends = 0;
      said.say("Go.");
      for await (const message of running) {
        if (message.type === "stream_event" && message.event.type === "content_block_delta" && ends === 0) await running.interrupt();
        if (message.type === "assistant") words.push([message.message.content[0].text, message.aborted]);
        if (message.type !== "result") continue;
        if (++ends === 2) said.close();
        else said.say("And now?");
      }
      const [[begun, aborted], whole] = words;
      assert.ok("one two three four".startsWith(begun) && begun.length > 0 && aborted === true);
      assert.deepEqual(whole, ["Five.", undefined]);
      const sent = (await here.bodies())[1].messages;
      assert.deepEqual(sent.map((message) => message.role), ["user", "assistant", "user"]);
      assert.equal(sent[1].content[0].text, begun);
    }),

    t.test("what there is can be asked for", async (t) => {
      const here = await stage(t, text("Hi."));
      const said = prompts();
      const running = here.query(said, { agents: { helper: { description: "Helps.", prompt: "You help." } } });
      said.say("Go.");
      let asked;
      for await (const message of running) {
        if (message.type !== "result") continue;
        asked = {
          commands: await running.supportedCommands(),
          models: await running.supportedModels(),
          servers: await running.mcpServerStatus(),
          account: await running.accountInfo(),
          agents: await running.supportedAgents(),
        };
        said.close();
      }
      assert.ok(Array.isArray(asked.commands));
      assert.ok(asked.models.some((model) => model.value === "default"));
      assert.deepEqual(asked.servers, []);
      assert.equal(asked.account.apiKeySource, "ANTHROPIC_API_KEY");
      assert.ok(asked.agents.some((agent) => agent.name === "helper"));
      const bodies = await here.bodies();
      assert.ok(bodies.length === 1 && JSON.stringify(bodies[0]).includes("helper"));
    }),

    t.test("answers take the form of a schema", async (t) => {
      const here = await stage(t, call("StructuredOutput", { n: 4 }));
      const schema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
      const messages = await here.ask("Go.", { outputFormat: { type: "json_schema", schema } });
      assert.deepEqual(result(messages).structured_output, { n: 4 });
      assert.deepEqual((await here.bodies())[0].tools.find((each) => each.name === "StructuredOutput").input_schema.required, ["n"]);
    }),

    t.test("pieces come as they are said", async (t) => {
      const here = await stage(t, { reply: [{ text: "Hello, world", fragments: [5, 7] }] });
      const messages = await here.ask("Go.", { includePartialMessages: true });
      const deltas = messages
        .filter((message) => message.type === "stream_event" && message.event.type === "content_block_delta")
        .map((message) => message.event.delta.text);
      assert.deepEqual(deltas, ["Hello", ", ", "world"]);
      assert.equal((await here.bodies())[0].stream, true);
    }),

    t.test("turns have an end", async (t) => {
      const here = await stage(t, call("Glob", { pattern: "*" }), text("Never."));
      const end = result(await here.ask("Go.", { maxTurns: 1 }));
      assert.deepEqual([end.subtype, end.terminal_reason, end.errors], ["error_max_turns", "max_turns", ["Reached maximum number of turns (1)"]]);
      assert.equal((await here.bodies()).length, 1);
    }),

    t.test("money has an end", async (t) => {
      const here = await stage(t, call("Glob", { pattern: "*" }), text("Never."));
      const end = result(await here.ask("Go.", { maxBudgetUsd: 0.00001 }));
      assert.deepEqual([end.subtype, end.terminal_reason], ["error_max_budget_usd", "budget_exhausted"]);
      assert.ok((await here.bodies()).length <= 1, "what cannot be paid is not asked for again");
    }),

    t.test("a session that should not be kept is not", async (t) => {
      const here = await stage(t, text("1"), text("2"));
      const kept = (id) => existsSync(join(here.config, "projects", here.work.replace(/[^A-Za-z0-9]/g, "-"), `${id}.jsonl`));
      assert.ok(kept(result(await here.ask("Keep me.")).session_id));
      assert.ok(!kept(result(await here.ask("Forget me.", { persistSession: false })).session_id));
      assert.equal((await here.bodies()).length, 2);
    }),

    t.test("files go back to what they were", async (t) => {
      const here = await stage(t, call("Write", { file_path: "a.txt", content: "new" }), text("Done."));
      const said = prompts();
      const options = { enableFileCheckpointing: true, permissionMode: "acceptEdits" };
      const running = here.query(said, options);
      const uuid = "0f0e0d0c-0b0a-4908-8706-050403020100";
      said.say("Change it.", { uuid });
      let after;
      for await (const message of running) {
        if (message.type !== "result") continue;
        after = await readFile(join(here.work, "a.txt"), "utf8");
        const dry = await running.rewindFiles(uuid, { dryRun: true });
        assert.equal(dry.canRewind, true);
        await running.rewindFiles(uuid);
        said.close();
      }
      assert.equal(after, "new");
      assert.ok(!answers((await here.bodies())[1])[0].is_error);
      assert.ok(!existsSync(join(here.work, "a.txt")));
    }),

    t.test("a program that gives up leaves nothing behind", async (t) => {
      const here = await stage(t, call("Bash", { command: "sleep 60" }), text("never"));
      const abortController = new AbortController();
      const running = here.query("Go.", { allowedTools: ["Bash"], abortController });
      const kinds = [];
      await assert.rejects(async () => {
        for await (const message of running) {
          kinds.push(message.type);
          if (message.type === "assistant") abortController.abort();
        }
      });
      assert.ok(kinds.includes("assistant"));
      assert.equal((await here.bodies()).length, 1);
    }),
  ]);
});
