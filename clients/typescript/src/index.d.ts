import type { EventEmitter } from "node:events";
import type { ClientRequestMethods, RequestId } from "./protocol.js";
import type { v2 } from "./protocol.js";

export type * as protocol from "./protocol.js";

export const VERSION: string;

export type Decision = { kind: string; reason?: string; words?: string[]; value?: unknown };
export type Question = { id: RequestId; method: string; params: any };
/** Decides about a question of the server; it may wait without blocking anything else. */
export type Handler = (question: Question) => Decision | Promise<Decision>;
/** An event; `type` says which members it has. */
export type Event = { type: string; thread?: string; turn?: string; [member: string]: any };

export namespace approvals {
  /** Yes, this once. */
  function allow(): Decision;
  /** Yes, and the same is not asked again in this session. */
  function allowForSession(): Decision;
  /** Yes, and commands that begin with these words are not asked about again. */
  function allowWithAmendment(words: string[]): Decision;
  /** No; the turn continues without it. */
  function deny(reason?: string): Decision;
  /** No, and the turn ends. */
  function cancel(): Decision;
  /** The result of a question that is no approval, as its method defines it. */
  function result(value: unknown): Decision;
  /** The result of a tool that the program supplies (`item/tool/call`), as text. */
  function toolResult(text: string, success?: boolean): Decision;
  /** Everything that a question asks for (`item/permissions/requestApproval`), for the turn or for the session. */
  function grant(question: Question, forSession?: boolean): Decision;
  const denyAll: Handler;
  const allowAll: Handler;
}

export interface ConnectOptions {
  name?: string;
  title?: string;
  version?: string;
  /** Whether the server may use parts of the protocol that may still change; true by default. */
  experimental?: boolean;
  /** The time limit of a call; 60,000 by default. */
  deadlineMs?: number;
  approvals?: Handler;
  approvalDeadlineMs?: number;
  /** Ends the handshake. */
  signal?: AbortSignal;
  /** Recovers from breaks: the connection tells it the numbers of events, and leaves out those that it saw already. */
  registry?: Registry;
}

export class CallError extends Error {
  readonly method: string;
  /** The code of the server; undefined if it did not answer. */
  readonly code?: number;
}

export class Events implements AsyncIterableIterator<Event> {
  push(event: Event): void;
  close(): void;
  next(): Promise<IteratorResult<Event>>;
  return(): Promise<IteratorResult<Event>>;
  [Symbol.asyncIterator](): this;
}

export interface CallOptions {
  signal?: AbortSignal;
  deadlineMs?: number;
}

export class Client {
  readonly events: Events;
  /** The server's answer to `initialize`. */
  readonly server: any;
  readonly isClosed: boolean;
  /** Resolves when the connection is closed, by either side. */
  readonly closed: Promise<void>;
  call<Name extends keyof ClientRequestMethods>(
    method: Name,
    params?: ClientRequestMethods[Name]["params"],
    options?: CallOptions,
  ): Promise<ClientRequestMethods[Name]["response"]>;
  call<Result = any>(method: string, params?: unknown, options?: CallOptions): Promise<Result>;
  close(): void;
}

export type Attach = (
  receive: (bytes: Uint8Array) => void,
  ended: () => void,
) => { send: (line: string) => void; close: () => void };
export function connect(attach: Attach, options?: ConnectOptions): Promise<Client>;
/** The reason why there is no connection to an address. */
export class DialError extends Error {
  /** Whether another attempt would fail in the same way. */
  readonly isFinal: boolean;
}
/** Connects to `unix:///PATH` or `unix://`, or with a token to `ws://IP:PORT`, `tcp://IP:PORT` or `grpc://IP:PORT` (Node). */
export function dial(address: string, options?: ConnectOptions & { token?: string }): Promise<Client>;
/** Connects over a WebSocket of the program's own, in a browser too. */
export function connectWebSocket(socket: WebSocket, options?: ConnectOptions): Promise<Client>;

export type Message = { type: "event" | "question" | "response" | "noise"; [member: string]: any };
export class Transcript {
  push(bytes: Uint8Array): Message[];
  finish(): Message[];
}
export function readLine(bytes: Uint8Array): Message | undefined;
export function eventOf(message: Message): Event | undefined;
export function notification(method: string, params?: unknown): Event;
export function request(id: RequestId, method: string, params?: unknown): Event;
export function response(result: unknown): Event | undefined;

export interface ItemState {
  readonly id: string;
  readonly kind: string;
  readonly members: Record<string, any>;
  readonly isComplete: boolean;
  /** The time of its beginning, in milliseconds of Unix time, if the server reported it. */
  readonly beganMs?: number;
}
export interface TurnState {
  readonly id: string;
  readonly status: string;
  readonly error: any;
  readonly items: ItemState[];
}
export interface ThreadState {
  readonly members: Record<string, any>;
  readonly turns: TurnState[];
  readonly plan: any;
  readonly diff: string;
  readonly usage: any;
  readonly errors: string[];
  readonly questions: Question[];
}
export class State {
  readonly threads: Map<string, ThreadState>;
  readonly rateLimits: any;
  readonly unknown: string[];
  readonly notes: number;
  apply(event: Event): void;
  toValue(): any;
}

/** The items that are wanted; what is left out does not matter. */
export interface Filter {
  kinds?: string[];
  turn?: string;
  statuses?: string[];
  /** The time from which on they began, in milliseconds of Unix time. */
  sinceMs?: number;
  /** The time before which they began. */
  untilMs?: number;
  /** A text that they contain, in any case. */
  text?: string;
}
export interface Entry {
  turn: TurnState;
  item: ItemState;
  atMs?: number;
  status: string;
  /** The first place with the text of the filter: `text.slice(start, end)`. */
  found?: { text: string; start: number; end: number };
}
export function timeline(thread: ThreadState, filter?: Filter): Generator<Entry>;
/** A thread as readable text. */
export function markdown(thread: ThreadState): string;

export namespace diff {
  interface Line {
    side: "both" | "old" | "new";
    old: number | null;
    new: number | null;
    text: string;
    /** The places that differ from the line that it replaces, or that replaces it; empty if all of it does. */
    changed: [start: number, end: number][];
  }
  interface FileDiff {
    path: string;
    kind: "add" | "delete" | "update";
    movedTo: string | null;
    hunks: { heading: string; lines: Line[] }[];
    added: number;
    removed: number;
    /** Whether further lines were left out. */
    isCut: boolean;
  }
  /** The changes of an item of the kind `fileChange`. */
  function ofItem(members: Record<string, any>): FileDiff[];
  /** The changes that a question is about. */
  function ofQuestion(question: Question, thread: ThreadState): FileDiff[];
  /** The changes of a diff of several files, such as that of a turn. */
  function ofText(diff: string): FileDiff[];
}

export interface Tokens {
  total: number;
  input: number;
  cached: number;
  cacheWrite: number;
  output: number;
  reasoning: number;
}
export interface ThreadUsage {
  total: Tokens;
  last: Tokens;
  window: number | null;
  /** The part of the model's window that is free, from 0 to 1. */
  windowLeft: number | null;
  turnCost: number | null;
  threadCost: number | null;
}
export interface LimitWindow {
  usedPercent: number;
  lengthSeconds: number | null;
  /** The time of the reset, in seconds of Unix time. */
  resetsAt: number | null;
}
export interface Limits {
  primary: LimitWindow | null;
  secondary: LimitWindow | null;
  plan: string | null;
  credits: string | null;
}
export function usageOf(usage: unknown): ThreadUsage | null;
export function costOf(
  tokens: Tokens,
  prices: { input: number; cached: number; cacheWrite: number; output: number },
): number;
export function limitsOf(limits: unknown, now: number): Limits;
export function waitOf(limits: Limits, now: number): number | null;

export type Life = "created" | "configured" | "active" | "completed" | "interrupted" | "archived";
export const LIVES: readonly Life[];
export function mayBecome(from: Life, to: Life): boolean;
export class Registry {
  follow(thread: string): void;
  forget(thread: string): void;
  life(thread: string): Life | undefined;
  step(thread: string, to: Life): void;
  subscribed(thread: string, answer: any): void;
  saw(thread: string, seq: number): boolean;
  /** Takes an event with its number; returns the end of a turn that nothing else tells. */
  note(event: Event, seq?: number): Event | undefined;
  sending(thread: string, params: Record<string, any>): string;
  answered(thread: string, name: string): void;
  recover(
    client: Pick<Client, "call">,
    recovered?: (thread: string, answer: any) => void,
  ): Promise<Map<string, string>>;
}

export const METHODS: readonly string[];
export const NOTIFICATIONS: readonly string[];
export const SERVER_REQUESTS: readonly string[];

export interface Launch {
  program?: string;
  args?: string[];
  /** The whole environment; that of this program if it is left out. */
  env?: Record<string, string | undefined>;
  cwd?: string;
  onStderr?: (line: string) => void;
}
/** A server that runs already, at an address that it listens on. */
export interface Listening {
  address: string;
  token?: string;
}
/** The two halves of a pipe: what the server writes, and what it reads. When it ends, it cannot be reached again. */
export interface Pipe {
  input: import("node:stream").Readable;
  output: import("node:stream").Writable;
}
export type ServerState =
  | { state: "stopped" | "starting" | "running" }
  | { state: "restarting"; attempt: number; delayMs: number }
  | { state: "failed"; error: string; restartInMs?: number };
/** Emits `state` with a `ServerState`, and `connection` with a `Client`. */
export class Supervisor extends EventEmitter {
  constructor(launch?: Launch | Listening | Pipe, options?: ConnectOptions);
  readonly state: ServerState;
  readonly pid: number | undefined;
  start(): Promise<Client>;
  connection(options?: { isPatient?: boolean }): Promise<Client>;
  stop(): Promise<void>;
  ref(): void;
  unref(): void;
}

export interface ReplayOptions {
  program?: string;
  /** Arguments before those of the replay. */
  args?: string[];
  env?: Record<string, string | undefined>;
  cwd?: string;
  speed?: "instant" | "original";
}
/** The events of a recorded thread, named by its file, its id or its name (Node). */
export function replay(thread: string, options?: ReplayOptions): AsyncGenerator<Event>;
/** The state that a replay leaves. */
export function replayed(thread: string, options?: ReplayOptions): Promise<State>;

export type ConfigValue = string | number | boolean | ConfigValue[] | { [key: string]: ConfigValue };
export interface CodexOptions {
  codexPathOverride?: string;
  baseUrl?: string;
  apiKey?: string;
  /** The whole environment of the server; that of this program if it is left out. */
  env?: Record<string, string | undefined>;
  config?: { [key: string]: ConfigValue };
  configOverrides?: string[];
  approvals?: Handler;
  clientName?: string;
  onStderr?: (line: string) => void;
}
export interface ThreadOptions {
  model?: string;
  workingDirectory?: string;
  sandboxMode?: "read-only" | "workspace-write" | "danger-full-access";
  approvalPolicy?: "never" | "on-request" | "on-failure" | "untrusted";
  modelReasoningEffort?: string;
  networkAccessEnabled?: boolean;
  webSearchMode?: "disabled" | "cached" | "live";
  webSearchEnabled?: boolean;
  additionalDirectories?: string[];
  threadSource?: string;
  /** Accepted for compatibility; the app-server does not need a repository. */
  skipGitRepoCheck?: boolean;
  baseInstructions?: string;
  developerInstructions?: string;
  config?: Record<string, unknown>;
}
export type UserInput = { type: "text"; text: string } | { type: "local_image"; path: string };
export type Input = string | UserInput[];
export interface TurnOptions {
  outputSchema?: unknown;
  signal?: AbortSignal;
}
export type Usage = {
  input_tokens: number;
  cached_input_tokens: number;
  cache_write_input_tokens: number;
  output_tokens: number;
  reasoning_output_tokens: number;
};
export type ThreadItem =
  | { id: string; type: "agent_message"; text: string }
  | { id: string; type: "reasoning"; text: string }
  | {
      id: string;
      type: "command_execution";
      command: string;
      aggregated_output: string;
      exit_code?: number;
      status: "in_progress" | "completed" | "failed";
    }
  | {
      id: string;
      type: "file_change";
      changes: { path: string; kind: "add" | "delete" | "update" }[];
      status: "completed" | "failed";
    }
  | {
      id: string;
      type: "mcp_tool_call";
      server: string;
      tool: string;
      arguments: unknown;
      result?: { content: any[]; structured_content: unknown };
      error?: { message: string };
      status: "in_progress" | "completed" | "failed";
    }
  | { id: string; type: "web_search"; query: string }
  | { id: string; type: "todo_list"; items: { text: string; completed: boolean }[] };
export type ThreadEvent =
  | { type: "thread.started"; thread_id: string }
  | { type: "turn.started"; turn_id: string }
  | { type: "turn.completed"; usage: Usage }
  | { type: "turn.failed"; error: { message: string } }
  | { type: "item.started" | "item.updated" | "item.completed"; item: ThreadItem };
export interface Turn {
  items: ThreadItem[];
  finalResponse: string;
  usage: Usage | null;
}
export class TurnError extends Error {}
export class Thread {
  /** The id, once the first turn has started. */
  readonly id: string | null;
  run(input: Input, options?: TurnOptions): Promise<Turn>;
  runStreamed(input: Input, options?: TurnOptions): Promise<{ events: AsyncGenerator<ThreadEvent> }>;
  steer(turnId: string, input: Input): Promise<any>;
  interrupt(turnId: string): Promise<any>;
}
export class Codex {
  constructor(options?: CodexOptions);
  readonly pid: number | undefined;
  client(): Promise<Client>;
  call: Client["call"];
  subscribe(take: (event: Event) => void): () => void;
  startThread(options?: ThreadOptions): Thread;
  resumeThread(id: string, options?: ThreadOptions): Thread;
  forkThread(id: string, options?: ThreadOptions): Promise<Thread>;
  listThreads(params?: v2.ThreadListParams): Promise<v2.ThreadListResponse>;
  archiveThread(id: string): Promise<void>;
  deleteThread(id: string): Promise<void>;
  setGoal(id: string, goal: { objective?: string; status?: string; tokenBudget?: number | null }): Promise<any>;
  getGoal(id: string): Promise<any>;
  clearGoal(id: string): Promise<void>;
  close(): Promise<void>;
}
