// Everything the official agent SDK for TypeScript offers, as its own types tell it, is used by a scenario. What a new version
// adds fails here until it is. Hooks: hooks.test.js.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const types = await readFile(join(here, "node_modules", "@anthropic-ai", "claude-agent-sdk", "sdk.d.ts"), "utf8");
const names = (await readdir(here)).filter((name) => name.endsWith(".js") && name !== "offered.test.js");
const scenarios = (await Promise.all(names.map((name) => readFile(join(here, name), "utf8")))).join("\n");

/** The lines of one declaration. */
function declared(begins) {
  const from = types.indexOf(begins);
  assert.ok(from >= 0, begins);
  return types.slice(from, types.indexOf("\n}", from));
}

const matches = (text, pattern) => [...new Set([...text.matchAll(pattern)].map((match) => match[1]))];

/** Each option, and the one scenario that is about it. */
const OPTIONS = {
  abortController: "a program that gives up leaves nothing behind",
  additionalDirectories: "further directories",
  agent: "a session works as an agent",
  agentProgressSummaries: "what an agent does is told in a line",
  agents: "an agent of the program does a task",
  allowDangerouslySkipPermissions: "without permissions, where that is allowed",
  allowedTools: "what is allowed runs unasked, and nothing else does",
  betas: "betas and the name of the caller go into headers",
  canUseTool: "a permission is asked for, changed and given",
  continue: "the newest one is continued",
  cwd: "where it works",
  debug: "what happens inside is noted where the session's own file is",
  debugFile: "what happens inside is noted in a file, and what is said is not",
  disallowedTools: "tools that are not wanted vanish",
  effort: "how hard the model tries",
  enableFileCheckpointing: "files go back to what they were",
  env: "variables reach commands, and the caller's own do not",
  executable: "a script that starts the program, and who runs it",
  executableArgs: "words for whoever runs the script",
  extraArgs: "arguments of one's own",
  fallbackModel: "another model takes over",
  forkSession: "a session goes on as another, and the first stays as it is",
  forwardSubagentText: "what agents say is forwarded",
  hooks: "hooks are called before and after",
  includeHookEvents: "what hooks of programs do is told in pairs",
  includePartialMessages: "pieces come as they are said",
  loadTimeoutMs: "a store that takes too long is not waited for",
  managedSettings: "settings of an administrator",
  maxBudgetUsd: "money has an end",
  maxThinkingTokens: "how much thinking, in the older words",
  maxTurns: "turns have an end",
  mcpServers: "tools of the program are called",
  mcpServersDelivery: "servers that are named in the first words instead of on the command line",
  model: "the model is chosen",
  onElicitation: "a question of a server inside the program is answered by the program",
  onUserDialog: "dialogs that the program could show",
  outputFormat: "answers take the form of a schema",
  pathToClaudeCodeExecutable: "a program that is not there",
  perTaskStopAffordance: "agents outlive an interrupt where they can be stopped one by one",
  permissionMode: "edits are made unasked",
  permissionPromptToolName: "a tool of the program answers questions",
  permissionPrompts: "nobody answers questions",
  persistSession: "a session that should not be kept is not",
  planModeInstructions: "planning follows the program's own way",
  pluginDelivery: "plugins that are named in the first words instead of on the command line",
  plugins: "a plugin that is named on the command line",
  projectConfigRoot: "the checkout that is trusted configures a session in another",
  promptSuggestions: "a guess of the next prompt comes behind the result",
  resume: "a session goes on",
  resumeDropsTurn: "a resume that would forget more than was seen is refused",
  resumeSessionAt: "a session is gone on with at a message",
  sandbox: "a box around commands",
  sessionId: "an id of one's own",
  sessionStore: "a store gets every line and gives them back",
  sessionStoreFlush: "a store is told at once",
  settingSources: "settings of nobody",
  settings: "settings of the caller",
  skills: "only the skills that are named are there",
  spawnClaudeCodeProcess: "a process that the program starts itself",
  stderr: "what goes wrong is told on the side",
  strictMcpConfig: "only the servers that are named",
  supportedDialogKinds: "kinds of dialogs that the program knows",
  systemPrompt: "the system prompt comes with the first words",
  taskBudget: "a budget that the model knows of",
  thinking: "thinking, or none of it",
  title: "a title",
  toolAliases: "a tool of the program takes the place of one of ours",
  toolConfig: "questions may show what options look like as a page",
  tools: "tools are chosen",
  verbatimPrompts: "prompts that mean what they say",
};

/** What is written below the title of a scenario. */
function written(title) {
  const parts = scenarios.split(/^ *(?:t\.)?test\("/m).filter((part) => part.startsWith(`${title}"`));
  assert.equal(parts.length, 1, `there is one scenario "${title}"`);
  return parts[0];
}

test("every option has a scenario, and no two have the same", () => {
  const options = matches(declared("export declare type Options = {"), /^ {4}(\w+)\??:/gm);
  assert.ok(options.length > 60, "the types are read");
  assert.deepEqual(Object.keys(OPTIONS).sort(), options.toSorted(), "without a scenario, or no longer offered");
  assert.equal(new Set(Object.values(OPTIONS)).size, options.length);
  for (const [name, title] of Object.entries(OPTIONS)) assert.match(written(title), new RegExp(`\\b${name}\\b`), title);
});

test("every request of a running session has a scenario", () => {
  const methods = matches(declared("export declare interface Query "), /^ {4}(\w+)\(/gm);
  assert.ok(methods.length > 25, "the types are read");
  assert.deepEqual(methods.filter((name) => !scenarios.includes(`.${name}(`)), []);
});

// What the process asks of the program, and not the other way round.
const ASKED_BY_THE_PROCESS = ["can_use_tool", "hook_callback", "elicitation", "request_user_dialog"];

test("every request that the types name is one that is known", async (t) => {
  const union = types.match(/^declare type SDKControlRequestInner = (.+);$/m)[1].split(" | ");
  const subtypes = union.map((name) => matches(declared(`declare type ${name} = {`), /^ {4}subtype: '(\w+)'/gm)[0]);
  const wanted = subtypes.filter((subtype) => !ASKED_BY_THE_PROCESS.includes(subtype));
  assert.ok(wanted.length > 30, "the types are read");
  const folder = await mkdtemp(join(tmpdir(), "pelton-offered-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const env = { PATH: process.env.PATH, HOME: folder, ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: "http://127.0.0.1:9" };
  const words = ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"];
  const session = spawn(process.env.PELTON_BIN, words, { cwd: folder, env, stdio: ["pipe", "pipe", "inherit"] });
  for (const subtype of [...wanted, "no_such_request"]) {
    session.stdin.write(`${JSON.stringify({ type: "control_request", request_id: subtype, request: { subtype } })}\n`);
  }
  session.stdin.end();
  const answers = new Map();
  for await (const line of createInterface({ input: session.stdout })) {
    const { type, response } = JSON.parse(line);
    if (type === "control_response") answers.set(response.request_id, response.error ?? "");
  }
  const unknown = [...answers].filter(([, error]) => error.startsWith("Unsupported")).map(([subtype]) => subtype);
  assert.deepEqual(unknown, ["no_such_request"]);
  assert.deepEqual(wanted.filter((subtype) => !answers.has(subtype)), [], "each is answered");
});

// About models and modes of an organisation: no process is asked.
const OF_THE_SDK_ALONE = ["filterEscalatingDefaultMode", "matchDeniedModels"];

test("every function has a scenario", () => {
  const functions = matches(types, /^export declare function (\w+)/gm).filter((name) => !OF_THE_SDK_ALONE.includes(name));
  assert.ok(functions.length > 15, "the types are read");
  assert.deepEqual(functions.filter((name) => !scenarios.includes(`${name}(`)), []);
});
