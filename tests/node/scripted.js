// Starts `pelton mock` with a script and gives an official client that talks to it.

import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import Anthropic from "@anthropic-ai/sdk";

const LISTENING = "listening on ";

/** A client of a model that plays `steps`. It does not retry unless told to, and both end with the test. */
export async function scripted(t, steps, { retries = 0, ...settings } = {}) {
  const folder = await mkdtemp(join(tmpdir(), "pelton-node-"));
  const script = join(folder, "script.json");
  await writeFile(script, JSON.stringify({ ...settings, steps }));
  const server = spawn(process.env.PELTON_BIN, ["mock", script, "--port", "0"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise((resolve) => server.once("close", resolve));
  t.after(async () => {
    server.kill();
    await ended;
    await rm(folder, { recursive: true });
  });
  const lines = createInterface({ input: server.stdout });
  const first = await Promise.race([
    new Promise((resolve) => lines.once("line", resolve)),
    ended.then((code) => `ended with ${code}`),
  ]);
  if (!first.startsWith(LISTENING)) throw new Error(`first line of \`pelton mock\`: ${first}`);
  return new Anthropic({ baseURL: first.slice(LISTENING.length), apiKey: "test", maxRetries: retries });
}
