"""JSON-RPC with one server over a pair of streams. There is no client before the handshake is complete, so no call can
come too early."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass, field
from typing import Any, Protocol

from .approvals import DEADLINE, Approvals, Handler, deny, encode
from .calls import Calls
from .errors import CallError, ClosedError, LateError, RefusedError
from .events import Event, Note, Other, RequestId, Resolved, ThreadKnown, Unknown
from .feed import Events
from .registry import Registry
from .router import request, response
from .shapes import thread_id
from .transcript import Message, Noise, Question, Response, Told, Transcript, event_of
from .version import VERSION

#: The most bytes of noise before the connection is given up: the other end is no server.
NOISE_BYTES = 64 * 1024
#: The most questions that are open at once; further ones are denied.
MOST_QUESTIONS = 256
READ_BYTES = 64 * 1024
OVERLOADED = -32001
#: The waits before a call is repeated that an overloaded server has refused, in seconds.
RETRIES = (0.1, 0.3, 1.0, 3.0)


class Input(Protocol):
    """Bytes of the server, such as `asyncio.StreamReader`."""

    async def read(self, n: int, /) -> bytes: ...


class Output(Protocol):
    """Bytes to the server, such as `asyncio.StreamWriter`."""

    def write(self, data: bytes, /) -> None: ...

    async def drain(self) -> None: ...

    def close(self) -> None: ...


@dataclass
class Options:
    """The name of a program for its server, its patience, and who answers questions."""

    name: str = "codex-embed"
    version: str = VERSION
    title: str | None = None
    #: Whether the server may use parts of the protocol that may still change.
    experimental: bool = True
    #: The time limit of a call in seconds.
    deadline: float = 60.0
    #: Decides about questions; without one, each is denied.
    approvals: Handler | None = None
    approval_deadline: float = DEADLINE
    #: Recovers from breaks: the connection tells it the numbers of events, and leaves out those that it saw already.
    registry: Registry | None = field(default=None, repr=False)


async def connect(reader: Input, writer: Output, options: Options | None = None) -> Client:
    """Shakes hands with a server; then there is a client."""
    options = options or Options()
    client = Client(reader, writer, options)
    info = {"name": options.name, "title": options.title or options.name, "version": options.version}
    capabilities = {"experimentalApi": options.experimental}
    try:
        client.server = await client.call("initialize", {"clientInfo": info, "capabilities": capabilities})
        await client.notify("initialized")
    except BaseException:
        client.abandon()
        raise
    return client


def _thread_of(event: Event) -> str:
    """The thread that an event is about; empty if it is about none."""
    if isinstance(event, (Other, Unknown)):
        return thread_id(event.params)
    return event.id if isinstance(event, ThreadKnown) else getattr(event, "thread", "")


class Client:
    """A connection after its handshake. Use `connect`."""

    def __init__(self, reader: Input, writer: Output, options: Options) -> None:
        self.events = Events()
        #: The server's answer to `initialize`.
        self.server: Any = None
        #: The methods of the server, with types.
        self.methods = Calls(self.call)
        self._options = options
        self._approvals = Approvals(options.approvals, options.approval_deadline)
        self._writer = writer
        self._writing = asyncio.Lock()
        self._pending: dict[RequestId, tuple[str, asyncio.Future[Response]]] = {}
        self._next_id = 1
        self._noise = 0
        self._questions: set[asyncio.Task[None]] = set()
        #: The ids of questions that have no answer yet.
        self._open: set[RequestId] = set()
        self._closed = False
        self._reader = asyncio.ensure_future(self._read(reader))

    @property
    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Ends the input of the server, which then ends the connection."""
        self._writer.close()

    def abandon(self) -> None:
        """Ends the connection without waiting for the server."""
        self.close()
        self._reader.cancel()

    async def wait_closed(self, deadline: float | None = None) -> None:
        """Waits until everything that the server has sent is read, within a deadline in seconds if there is one."""
        await asyncio.wait((self._reader,), timeout=deadline)

    async def call(self, method: str, params: Any = None, *, deadline: float | None = None) -> Any:
        """Calls a method. A server that is overloaded is asked again, within the deadline. Cancelling the call is safe:
        its answer is ignored."""
        loop = asyncio.get_running_loop()
        limit = self._options.deadline if deadline is None else deadline
        until = loop.time() + limit
        retries = iter(RETRIES)
        while True:
            try:
                answer = await asyncio.wait_for(self._once(method, params), max(until - loop.time(), 0))
            except (asyncio.TimeoutError, TimeoutError):
                raise LateError(method, limit) from None
            if answer.error is None:
                return answer.result
            code, wait = answer.error.get("code"), next(retries, None)
            if code != OVERLOADED or wait is None or loop.time() + wait >= until:
                message = str(answer.error.get("message") or "")
                raise RefusedError(method, code if type(code) is int else 0, message, answer.error.get("data"))
            await asyncio.sleep(wait * (0.75 + random.random() / 4))

    async def _once(self, method: str, params: Any) -> Response:
        if self._closed:
            raise ClosedError(method)
        id = self._next_id
        self._next_id += 1
        waiting: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._pending[id] = (method, waiting)
        try:
            await self._send({"id": id, "method": method, "params": {} if params is None else params}, method)
            return await waiting
        finally:
            self._pending.pop(id, None)
            if waiting.done() and not waiting.cancelled():
                # An error that nobody waits for any more is no news.
                waiting.exception()

    async def notify(self, method: str) -> None:
        """Sends a notification."""
        await self._send({"method": method}, method)

    async def _send(self, message: dict[str, Any], method: str) -> None:
        try:
            line = json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        except (TypeError, ValueError) as error:
            raise CallError(method, f"cannot write the parameters: {error}") from error
        # One at a time, and nothing more while the server does not read what is there.
        async with self._writing:
            try:
                await self._writer.drain()
                self._writer.write(line)
                await self._writer.drain()
            except (OSError, RuntimeError):
                raise ClosedError(method) from None

    async def _read(self, reader: Input) -> None:
        transcript = Transcript()
        try:
            while data := await reader.read(READ_BYTES):
                for message in transcript.push(data):
                    self._take(message)
                if self._noise > NOISE_BYTES:
                    break
            for message in transcript.finish():
                self._take(message)
        except OSError:
            # The other end is gone; that is all there is to know.
            pass
        finally:
            self._end()

    def _end(self) -> None:
        """Everything that waits fails, and the events end."""
        self._closed = True
        for method, waiting in list(self._pending.values()):
            if not waiting.done():
                waiting.set_exception(ClosedError(method))
        for question in list(self._questions):
            question.cancel()
        self._writer.close()
        self.events.close()

    def _take(self, message: Message) -> None:
        match message:
            case Response(id=id, result=result, error=error):
                event = response(result) if error is None else None
                if event is not None:
                    self.events.push(event)
                self._note_subscription(event, result)
                _, waiting = self._pending.pop(id, ("", None))
                if waiting is None or waiting.done():
                    self.events.push(Note(f"an answer to nobody: {json.dumps(id)}"))
                else:
                    waiting.set_result(message)
            case Question():
                self._ask(message)
            case Told(event=event, seq=seq):
                self._told(event, seq)
            case Noise(bytes=size):
                # A line that is too long is one note; many lines that are no messages come from no server.
                self._noise += size if size <= NOISE_BYTES else 0
                self.events.push(event_of(message) or Note(""))

    def _note_subscription(self, event: Event | None, result: Any) -> None:
        # Numbered events may follow in the same piece of bytes, before the caller has its answer.
        registry = self._options.registry
        if registry is not None and isinstance(event, ThreadKnown) and isinstance(result.get("logId"), str):
            registry.subscribed(event.id, result)

    def _told(self, event: Event, seq: int | None) -> None:
        if isinstance(event, Resolved):
            self._open.discard(event.id)
        registry, thread = self._options.registry, _thread_of(event)
        if registry is None:
            self.events.push(event)
        elif seq is not None and thread and not registry.saw(thread, seq):
            self.events.push(Note(f"event {seq} of thread {thread} was reported already"))
        else:
            self.events.push(event)
            if (end := registry.note(event, seq)) is not None:
                self.events.push(end)

    def _ask(self, question: Question) -> None:
        """Has a question answered, concurrently with everything else."""
        # One that is open already and asked again has one answer.
        if question.id in self._open:
            return
        self._open.add(question.id)
        asked = request(question.id, question.method, question.params)
        self.events.push(asked)
        task = asyncio.ensure_future(self._answer(question, asked.thread, len(self._questions) >= MOST_QUESTIONS))
        self._questions.add(task)
        task.add_done_callback(self._questions.discard)

    async def _answer(self, question: Question, thread: str, is_too_much: bool) -> None:
        if is_too_much:
            answer, note = encode(question.method, deny("too many questions")), None
        else:
            answer, note = await self._approvals.answer(question)
        if note is not None:
            self.events.push(Note(note))
        if question.id not in self._open:
            # Somebody else has answered it.
            return
        self._open.discard(question.id)
        try:
            await self._send({"id": question.id, **answer}, question.method)
        except ClosedError:
            return
        except CallError as error:
            # The result that the handler gave is no JSON.
            self.events.push(Note(str(error)))
            await self._send({"id": question.id, **encode(question.method, deny())}, question.method)
        self.events.push(Resolved(thread, question.id))
