// The declarations for Node. They need no types of Node, which a program may not have installed.

import type { Client, ConnectOptions, Event, Handler, State } from "./core.js";
import type { v2 } from "./protocol.js";

export * from "./core.js";

/** The reason why there is no connection to an address. */
export class DialError extends Error {
  /** Whether another attempt would fail in the same way. */
  readonly isFinal: boolean;
}
/** Connects to `unix:///PATH` or `unix://`, or with a token to `ws://IP:PORT`, `tcp://IP:PORT` or `grpc://IP:PORT` (Node). */
export function dial(address: string, options?: ConnectOptions & { token?: string; sendToken?: boolean }): Promise<Client>;

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
  /** Whether the token is sent to a server that does not prove that it knows it. */
  sendToken?: boolean;
}
/** The part of a stream of Node that is used. */
export interface Emits {
  on(event: string, listener: (...values: any[]) => void): unknown;
  once(event: string, listener: (...values: any[]) => void): unknown;
}
/** The two halves of a pipe: what the server writes, and what it reads. When it ends, it cannot be reached again. */
export interface Pipe {
  input: Emits;
  output: Emits & {
    readonly writableLength: number;
    readonly writableEnded: boolean;
    write(data: string): unknown;
    end(): unknown;
    destroy(): unknown;
  };
}
export type ServerState =
  | { state: "stopped" | "starting" | "running" }
  | { state: "restarting"; attempt: number; delayMs: number }
  | { state: "failed"; error: string; restartInMs?: number };
/** An `EventEmitter` that emits `state` with a `ServerState`, and `connection` with a `Client`. */
export class Supervisor {
  constructor(launch?: Launch | Listening | Pipe, options?: ConnectOptions);
  on(event: "state", listener: (state: ServerState) => void): this;
  on(event: "connection", listener: (client: Client) => void): this;
  once(event: "state", listener: (state: ServerState) => void): this;
  once(event: "connection", listener: (client: Client) => void): this;
  off(event: "state" | "connection", listener: (value: any) => void): this;
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
  /** Has a function called with every event; returns one that ends it. If it fails, the others get a note, once. */
  subscribe(take: (event: Event) => unknown): () => void;
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
