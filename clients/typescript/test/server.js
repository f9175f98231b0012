// A server for tests: the real program with a scripted model.

import { accessSync, constants, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

const onPath = (name) =>
  (process.env.PATH ?? "")
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });

/** The program: `CODEX_BIN`, or `codex` on the `PATH`. */
export const PROGRAM = process.env.CODEX_BIN ?? onPath("codex");
export const needsProgram = { skip: PROGRAM ? false : "set CODEX_BIN to a codex program" };

/** Whether a process runs; one that has ended and was not waited for has no memory any more. */
export function isAlive(pid) {
  try {
    return readFileSync(`/proc/${pid}/status`, "utf8").includes("VmRSS");
  } catch {
    return false;
  }
}

/** Waits until a process is gone; a signal takes a moment. */
export async function isGone(pid) {
  const until = Date.now() + 10_000;
  while (isAlive(pid)) {
    if (Date.now() > until) return false;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return true;
}

/** A folder with a workspace, a home and the answers of the model, and the options of a `Codex` for it. */
export function scripted(context, answers, more = {}) {
  const folder = mkdtempSync(join(tmpdir(), "codex-embed-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const [home, work, script] = ["home", "work", "answers.json"].map((name) => join(folder, name));
  [home, work].forEach((path) => mkdirSync(path));
  writeFileSync(script, JSON.stringify(answers));
  const config = { model_provider: "scripted", model_providers: { scripted: { script } } };
  const options = { codexPathOverride: PROGRAM, config, env: { ...process.env, CODEX_HOME: home }, ...more };
  return { options, work, folder };
}

/** An answer of the model. */
export const says = (text, more = {}) => ({ items: [{ text }], ...more });
/** A call of the model that runs a command. */
export const runs = (command) => ({ items: [{ call: "shell", args: { command: ["bash", "-lc", command] } }] });
