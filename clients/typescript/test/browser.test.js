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
