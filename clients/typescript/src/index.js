export { Codex, Thread, TurnError } from "./codex.js";
export { DialError } from "./address.js";
export { dial } from "./dial.js";
export { replay, replayed } from "./replay.js";
export { Supervisor } from "./supervisor.js";
export * from "./core.js";
