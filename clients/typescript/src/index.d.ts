import type { EventEmitter } from "node:events";
import type { RequestId } from "./protocol.js";

export type * as protocol from "./protocol.js";

export type Decision = { kind: string; reason?: string; words?: string[]; value?: unknown };
export type Question = { id: RequestId; method: string; params: any };
export type Handler = (question: Question) => Decision | Promise<Decision>;
/** An event; `type` says which members it has. */
export type Event = { type: string; thread?: string; turn?: string; [member: string]: any };

export namespace approvals {
  function allow(): Decision;
  function allowForSession(): Decision;
  function allowWithAmendment(words: string[]): Decision;
  function deny(reason?: string): Decision;
  function cancel(): Decision;
  function result(value: unknown): Decision;
  const denyAll: Handler;
  const allowAll: Handler;
}

export interface ConnectOptions {
  name?: string;
  version?: string;
  experimental?: boolean;
  deadlineMs?: number;
  approvals?: Handler;
  approvalDeadlineMs?: number;
}

export class CallError extends Error {
  readonly method: string;
  readonly code?: number;
}

export class Events implements AsyncIterableIterator<Event> {
  next(): Promise<IteratorResult<Event>>;
  return(): Promise<IteratorResult<Event>>;
  [Symbol.asyncIterator](): this;
}

export class Client {
  readonly events: Events;
  readonly server: unknown;
  readonly isClosed: boolean;
  call<Result = any>(
    method: string,
    params?: unknown,
    options?: { signal?: AbortSignal; deadlineMs?: number },
  ): Promise<Result>;
  close(): void;
}

export type Attach = (
  receive: (bytes: Uint8Array) => void,
  ended: () => void,
) => { send: (line: string) => void; close: () => void };
export function connect(attach: Attach, options?: ConnectOptions): Promise<Client>;
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

export class State {
  readonly threads: Map<string, any>;
  readonly rateLimits: unknown;
  readonly unknown: string[];
  readonly notes: number;
  apply(event: Event): void;
  toValue(): unknown;
}

export const METHODS: readonly string[];
export const NOTIFICATIONS: readonly string[];
export const SERVER_REQUESTS: readonly string[];

export interface Launch {
  program?: string;
  args?: string[];
  env?: Record<string, string>;
  cwd?: string;
  onStderr?: (line: string) => void;
}
export class Supervisor extends EventEmitter {
  constructor(launch?: Launch, options?: ConnectOptions);
  readonly state: { state: string; attempt?: number; delayMs?: number; error?: string; restartInMs?: number };
  start(): Promise<Client>;
  stop(): Promise<void>;
}

export interface CodexOptions {
  codexPathOverride?: string;
  baseUrl?: string;
  apiKey?: string;
  env?: Record<string, string>;
  config?: Record<string, unknown>;
  approvals?: Handler;
  clientName?: string;
}
export interface ThreadOptions {
  model?: string;
  workingDirectory?: string;
  sandboxMode?: string;
  approvalPolicy?: string;
  baseInstructions?: string;
  developerInstructions?: string;
  config?: Record<string, unknown>;
}
export type Input = string | ({ type: "text"; text: string } | { type: "local_image"; path: string })[];
export interface TurnOptions {
  outputSchema?: unknown;
  signal?: AbortSignal;
}
export type Usage = { input_tokens: number; cached_input_tokens: number; output_tokens: number };
export class TurnError extends Error {}
export class Thread {
  readonly id: string | null;
  run(input: Input, options?: TurnOptions): Promise<{ items: any[]; finalResponse: string; usage: Usage | null }>;
  runStreamed(input: Input, options?: TurnOptions): Promise<{ events: AsyncGenerator<any> }>;
  steer(turnId: string, input: Input): Promise<any>;
  interrupt(turnId: string): Promise<any>;
}
export class Codex {
  constructor(options?: CodexOptions);
  client(): Promise<Client>;
  subscribe(take: (event: Event) => void): () => void;
  startThread(options?: ThreadOptions): Thread;
  resumeThread(id: string, options?: ThreadOptions): Thread;
  forkThread(id: string, options?: ThreadOptions): Promise<Thread>;
  listThreads(params?: object): Promise<any>;
  deleteThread(id: string): Promise<void>;
  setGoal(id: string, goal: object): Promise<any>;
  close(): Promise<void>;
}
