// The declarations of everything that runs in a browser too.

import type { ClientRequestMethods, RequestId } from "./protocol.js";

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
/** The part of a WebSocket that is used. */
export interface WebSocketLike {
  readonly readyState: number;
  addEventListener(type: string, listener: (event: any) => void): void;
  send(data: string): void;
  close(): void;
}
/** Connects over a WebSocket of the program's own, in a browser too. */
export function connectWebSocket(socket: WebSocketLike, options?: ConnectOptions): Promise<Client>;

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
