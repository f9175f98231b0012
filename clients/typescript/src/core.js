// Everything that runs in a browser too.
export * as approvals from "./approvals.js";
export { CallError, Client, Events, connect, connectWebSocket } from "./connection.js";
export * as diff from "./diff.js";
export { markdown } from "./markdown.js";
export { LIVES, Registry, mayBecome } from "./registry.js";
export { notification, request, response } from "./router.js";
export { State } from "./state.js";
export { METHODS, NOTIFICATIONS, SERVER_REQUESTS } from "./tables.js";
export { timeline } from "./timeline.js";
export { Transcript, eventOf, readLine } from "./transcript.js";
export { costOf, limitsOf, usageOf, waitOf } from "./usage.js";
export { VERSION } from "./version.js";
