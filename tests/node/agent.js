// A place for one program that drives Pelton through the official agent SDK, with a scripted model behind it.

import { spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { query } from "@anthropic-ai/claude-agent-sdk";

const LISTENING = "listening on ";

/** The model says this. */
export const text = (words, more = {}) => ({ reply: [{ text: words }], ...more });

/** The model calls a tool. */
export const call = (tool, input, more = {}) => ({ reply: [{ tool, input }], ...more });

/** A stage whose model plays `steps`; everything on it ends with the test. */
export async function stage(t, ...steps) {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "pelton-agent-")));
  const [work, home, config] = ["work", "home", "config"].map((name) => join(folder, name));
  for (const place of [work, home, config]) await mkdir(place);
  const [script, record] = [join(folder, "script.json"), join(folder, "record.jsonl")];
  await writeFile(script, JSON.stringify({ steps }));
  const server = spawn(process.env.PELTON_BIN, ["mock", script, "--port", "0", "--record", record], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const ended = new Promise((resolve) => server.once("close", resolve));
  let wasCompared = false;
  t.after(async () => {
    server.kill();
    await ended;
    await rm(folder, { recursive: true, force: true });
    // What the SDK delivers is one half of a scenario.
    if (!wasCompared) throw new Error("nobody looked at what the model was asked");
  });
  const lines = createInterface({ input: server.stdout });
  const first = await new Promise((resolve) => lines.once("line", resolve));
  if (!first.startsWith(LISTENING)) throw new Error(`first line of \`pelton mock\`: ${first}`);
  const stderr = [];
  return {
    work,
    config,
    stderr,
    options(more = {}) {
      const { env, ...others } = more;
      return {
        pathToClaudeCodeExecutable: process.env.PELTON_BIN,
        cwd: work,
        env: {
          PATH: process.env.PATH,
          HOME: home,
          CLAUDE_CONFIG_DIR: config,
          ANTHROPIC_BASE_URL: first.slice(LISTENING.length),
          ANTHROPIC_API_KEY: "sk-test",
          ...env,
        },
        stderr: (line) => stderr.push(line),
        ...others,
      };
    },
    query(prompt, more) {
      return query({ prompt, options: this.options(more) });
    },
    /** Everything a query delivers. An error that the SDK throws after a result is kept beside the messages. */
    async ask(prompt, more) {
      const messages = [];
      try {
        for await (const message of this.query(prompt, more)) messages.push(message);
      } catch (error) {
        messages.error = error;
      }
      return messages;
    },
    /** What the model was asked, oldest first. */
    async requests() {
      wasCompared = true;
      const records = (await readFile(record, "utf8").catch(() => "")).split("\n").filter(Boolean).map((line) => JSON.parse(line));
      return records.filter((entry) => entry.kind === "request" && entry.path === "/v1/messages");
    },
    async bodies() {
      return (await this.requests()).map((entry) => entry.body);
    },
  };
}

/** The only result. */
export function result(messages) {
  const results = messages.filter((message) => message.type === "result");
  if (results.length !== 1) throw new Error(`${results.length} results: ${JSON.stringify(messages)} ${messages.error}`);
  return results[0];
}

export const system = (messages, subtype) => messages.filter((message) => message.type === "system" && message.subtype === subtype);

/** The results of tools, as the model reads them. */
export const results = (messages) =>
  messages
    .filter((message) => message.type === "user" && Array.isArray(message.message.content))
    .flatMap((message) => message.message.content.filter((block) => block.type === "tool_result"));

/** The results of tools in the newest message the model was sent. */
export const answers = (body) => body.messages.at(-1).content.filter((block) => block.type === "tool_result");

export const plain = (content) => (typeof content === "string" ? content : content.map((block) => block.text ?? "").join("\n"));

/** Prompts that a program sends one by one, and that stay open until it says so. */
export function prompts() {
  const waiting = [];
  let wake = () => {};
  let open = true;
  return {
    say(content, more = {}) {
      waiting.push({ type: "user", message: { role: "user", content }, parent_tool_use_id: null, session_id: "", ...more });
      wake();
    },
    close() {
      open = false;
      wake();
    },
    async *[Symbol.asyncIterator]() {
      while (true) {
        while (waiting.length > 0) yield waiting.shift();
        if (!open) return;
        await new Promise((resolve) => (wake = resolve));
      }
    },
  };
}
