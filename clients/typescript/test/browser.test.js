// The part for browsers uses nothing of Node.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

test("core imports no module of Node", () => {
  const seen = new Set();
  const waiting = [new URL("../src/core.js", import.meta.url).href];
  while (waiting.length > 0) {
    const file = waiting.pop();
    if (seen.has(file)) continue;
    seen.add(file);
    const source = readFileSync(new URL(file), "utf8");
    for (const [, from] of source.matchAll(/^(?:import|export) .*from "(.*)";$/gm)) {
      assert.ok(from.startsWith("./"), `${file} imports ${from}`);
      waiting.push(new URL(from, file).href);
    }
    assert.doesNotMatch(source, /\b(process|Buffer|require)\b[.(]/, file);
  }
  assert.ok(seen.size > 12);
});

test("what is declared is what there is, and needs no types of Node", async () => {
  const read = (name) => readFileSync(new URL(`../src/${name}`, import.meta.url), "utf8");
  const declared = (source) =>
    [...source.matchAll(/^export (?:function|class|const|namespace) (\w+)/gm)].map(([, name]) => name);
  const core = Object.keys(await import("../src/core.js"));
  const node = Object.keys(await import("../src/index.js")).filter((name) => !core.includes(name));
  for (const [file, names] of [["core.d.ts", core], ["index.d.ts", node]]) {
    const source = read(file);
    assert.deepEqual([...new Set(declared(source))].sort(), names.sort(), file);
    assert.doesNotMatch(source, /node:/, file);
  }
});
