#!/usr/bin/env node
// Runs the binary of this machine in place of this script: same arguments, same streams, same signals, same end.

import { spawn } from "node:child_process";
import { find, triples } from "./platform.js";

const binary = find();
if (!binary) {
  const wanted = triples()[0] ?? `${process.platform} ${process.arch}`;
  console.error(`error: this package has no binary for ${wanted}`);
  process.exit(1);
}

const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`error: ${binary} could not be started: ${error.message}`);
  process.exit(1);
});
const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
for (const signal of signals) {
  process.on(signal, () => child.kill(signal));
}
child.on("exit", (code, signal) => {
  if (signal) {
    // Whoever waits for this script learns how the program ended.
    signals.forEach((name) => process.removeAllListeners(name));
    process.kill(process.pid, signal);
  } else {
    process.exit(code ?? 1);
  }
});
