// Programs that cannot be started (Node).

import { existsSync } from "node:fs";

/** The reason why a program cannot be started. The system does not tell a missing program from a missing folder. */
export function cannotStart(program, cwd, { code, message }) {
  const isFolder = cwd !== undefined && !existsSync(cwd);
  const missing = isFolder ? `there is no folder ${cwd}` : "there is no such program";
  return new Error(`cannot start ${program}: ${code === "ENOENT" ? missing : message}`);
}
