// Where the binary of this machine lies in the package: vendor/<target triple>/codex/codex, the place where programs
// that embed the package look for it.

import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const TRIPLES = {
  "linux x64": ["x86_64-unknown-linux-musl", "x86_64-unknown-linux-gnu"],
  "linux arm64": ["aarch64-unknown-linux-musl", "aarch64-unknown-linux-gnu"],
  "darwin x64": ["x86_64-apple-darwin"],
  "darwin arm64": ["aarch64-apple-darwin"],
};

/** The folder of the package. */
export const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/** The target triples that run on a machine, the best one first. */
export function triples(platform = process.platform, arch = process.arch) {
  return TRIPLES[`${platform} ${arch}`] ?? [];
}

/** Where the binary for a triple lies below a folder. */
export function place(triple, root = ROOT) {
  return path.join(root, "vendor", triple, "codex", "codex");
}

/** The binary for this machine, or nothing. */
export function find(root = ROOT) {
  return triples().map((triple) => place(triple, root)).find((file) => existsSync(file));
}
