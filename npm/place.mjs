#!/usr/bin/env node
// Puts a binary where the package looks for it: node npm/place.mjs BINARY [TRIPLE]

import { chmodSync, copyFileSync, mkdirSync } from "node:fs";
import path from "node:path";
import { place, triples } from "./bin/platform.js";

const [binary, triple = triples().at(-1)] = process.argv.slice(2);
if (!binary || !triple) {
  console.error("usage: node npm/place.mjs BINARY [TRIPLE]");
  process.exit(2);
}
const target = place(triple);
mkdirSync(path.dirname(target), { recursive: true });
copyFileSync(binary, target);
chmodSync(target, 0o755);
console.log(target);
