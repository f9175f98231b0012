// A recorded thread, replayed without a model or a server: `codex replay` prints it, and this reads it (Node).

import { spawn } from "node:child_process";

import { cannotStart } from "./programs.js";
import { State } from "./state.js";
import { Transcript, eventOf } from "./transcript.js";

/** The longest pause between two lines. The program shortens those of the original to a minute. */
const PAUSE_MS = 90_000;
/** The most characters of an error that are kept. */
const ERROR_CHARACTERS = 16 * 1024;

/**
 * The events of a thread, named by its file, its id or its name.
 * @param {string} thread
 * @param {{program?: string, args?: string[], env?: Record<string, string>, cwd?: string, speed?: "instant" | "original"}} [options]
 *   `args` come before those of the replay
 */
export async function* replay(thread, { program = "codex", args = [], env, cwd, speed = "instant" } = {}) {
  const words = [...args, "replay", "--dialect", "v2", "--speed", speed, "--", thread];
  const child = spawn(program, words, { env, cwd, stdio: ["ignore", "pipe", "pipe"] });
  let [failure, errors] = [undefined, ""];
  child.stderr.setEncoding("utf8").on("data", (text) => (errors = (errors + text).slice(0, ERROR_CHARACTERS)));
  const closed = new Promise((resolve) => {
    child.once("close", (code, signal) => resolve(code ?? signal));
    child.once("error", (error) => (failure = cannotStart(program, cwd, error)));
  });
  const transcript = new Transcript();
  const eventsOf = (messages) => messages.map(eventOf).filter((event) => event !== undefined);
  try {
    for await (const bytes of withinPause(child.stdout)) yield* eventsOf(transcript.push(bytes));
    yield* eventsOf(transcript.finish());
    const status = await closed;
    if (failure) throw failure;
    if (status !== 0) throw new Error(`the replay has ended with status ${status}: ${errors.trim()}`);
  } finally {
    child.kill("SIGKILL");
  }
}

/** The pieces of a stream, which fails after a long pause. The time that its reader takes does not count. */
async function* withinPause(stream) {
  const pieces = stream[Symbol.asyncIterator]();
  const late = () => stream.destroy(new Error(`the replay has paused for longer than ${PAUSE_MS} ms`));
  for (;;) {
    const timer = setTimeout(late, PAUSE_MS);
    const { value, done } = await pieces.next().finally(() => clearTimeout(timer));
    if (done) return;
    yield value;
  }
}

/** The state that a replay leaves. */
export async function replayed(thread, options) {
  const state = new State();
  for await (const event of replay(thread, options)) state.apply(event);
  return state;
}
