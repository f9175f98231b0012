// The package with a stand-in for the binary.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { ROOT, place, triples } from "./bin/platform.js";

/** Runs the script of a copy of the package whose binary is this shell script, if there is one. */
function run(script, args, input = "") {
  const folder = mkdtempSync(path.join(tmpdir(), "codex-npm-"));
  try {
    cpSync(path.join(ROOT, "bin"), path.join(folder, "bin"), { recursive: true });
    cpSync(path.join(ROOT, "package.json"), path.join(folder, "package.json"));
    if (script !== undefined) {
      const binary = place(triples()[0], folder);
      mkdirSync(path.dirname(binary), { recursive: true });
      writeFileSync(binary, `#!/bin/sh\n${script}\n`);
      chmodSync(binary, 0o755);
    }
    return spawnSync(process.execPath, [path.join(folder, "bin", "codex.js"), ...args], { input, encoding: "utf8" });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("the binary lies where programs that embed the package look", () => {
  assert.equal(place("x86_64-unknown-linux-musl", "/p"), "/p/vendor/x86_64-unknown-linux-musl/codex/codex");
  assert.ok(triples("darwin", "arm64").includes("aarch64-apple-darwin"));
  assert.deepEqual(triples("plan9", "mips"), []);
});

test("arguments, streams and the exit status are those of the binary", () => {
  const done = run('printf "%s|" "$@"; cat; echo problem >&2; exit 7', ["exec", "two words", "-"], "piped");
  assert.equal(done.stdout, "exec|two words|-|piped");
  assert.equal(done.stderr, "problem\n");
  assert.equal(done.status, 7);
});

test("a signal that ends the binary ends the script the same way", () => {
  assert.equal(run("kill -TERM $$", []).signal, "SIGTERM");
});

test("a package without a binary for this machine says so", () => {
  const done = run(undefined, ["--version"]);
  assert.equal(done.status, 1);
  assert.match(done.stderr, /has no binary for/);
});
