"""Keeps a connection to a server: runs it as a child process or dials its address, again when it ends by itself; or uses
the two halves of a pipe, once. No child outlives its supervisor: one that does not end with its input is killed with all
that it has started."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .backoff import Backoff
from .connection import Client, Input, Options, Output, connect
from .dial import dial
from .errors import CodexError, StartError

#: The time limit for a server to end after its input has ended, in seconds.
GRACE = 5.0
#: The longest line of standard error that is passed on as one.
STDERR_LINE_BYTES = 64 * 1024
IS_UNIX = sys.platform != "win32"

#: Process groups to kill if the program ends without stopping its servers.
_alive: set[int] = set()


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if IS_UNIX:
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGTERM)


@atexit.register
def _kill_all() -> None:
    while _alive:
        _kill_group(_alive.pop())


@dataclass
class Launch:
    """The server's program, arguments, environment and working directory."""

    program: str = "codex"
    args: Sequence[str] = ("app-server",)
    #: The whole environment; that of this program if it is None.
    env: Mapping[str, str] | None = None
    cwd: str | None = None
    #: Takes the lines of standard error.
    on_stderr: Callable[[str], None] | None = None


def cannot_start(launch: Launch, error: Exception) -> StartError:
    """The reason why a program cannot be started."""
    reason = str(error)
    if isinstance(error, FileNotFoundError):
        is_folder = launch.cwd is not None and not os.path.isdir(launch.cwd)
        reason = f"there is no folder {launch.cwd}" if is_folder else "there is no such program"
    return StartError(f"cannot start {launch.program}: {reason}")


@dataclass(frozen=True, slots=True)
class Listening:
    """A server that runs already, at an address that it listens on."""

    address: str
    token: str | None = field(default=None, repr=False)
    #: Whether the token is sent to a server that does not prove that it knows it.
    send_token: bool = False


@dataclass(frozen=True, slots=True)
class Pipe:
    """The two halves of a pipe. When it ends, it cannot be reached again."""

    reader: Input
    writer: Output


@dataclass(frozen=True, slots=True)
class ServerState:
    """The state of a server: `stopped`, `starting`, `running`, `restarting` with its attempt and its delay, or `failed`
    with its error; then `delay` is None if there is no restart."""

    name: str
    attempt: int = 0
    delay: float | None = None
    error: str = ""


class _Streams(asyncio.subprocess.SubprocessStreamProtocol):
    """The streams of a child, and its exit. `Process.wait` waits for the end of its streams too, which a process that the
    child has started may hold open."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(limit=STDERR_LINE_BYTES, loop=loop)
        self.exited: asyncio.Future[None] = loop.create_future()

    def process_exited(self) -> None:
        super().process_exited()
        if not self.exited.done():
            self.exited.set_result(None)


class _Tree:
    """A child and all that it has started in its process group."""

    def __init__(
        self, process: asyncio.subprocess.Process, transport: asyncio.SubprocessTransport, streams: _Streams
    ) -> None:
        self.process = process
        self.exited = streams.exited
        self._transport = transport
        self._group: int | None = process.pid
        _alive.add(process.pid)

    def kill(self) -> None:
        """Kills the group, whether its first process has ended or not. Only once: later its number may belong to others."""
        if self._group is not None:
            _alive.discard(self._group)
            _kill_group(self._group)
            self._group = None

    async def end(self, client: Client | None) -> None:
        """Kills the group, and closes its streams once everything in them is read."""
        self.kill()
        await asyncio.wait((self.exited,), timeout=GRACE)
        if client is not None:
            client.close()
            await client.wait_closed(GRACE)
        self._transport.close()


class Supervisor:
    """Keeps a connection to a server. Each time it is up there is a new one."""

    def __init__(self, launch: Launch | Listening | Pipe | None = None, options: Options | None = None) -> None:
        self.state = ServerState("stopped")
        self._launch = launch or Launch()
        self._options = options or Options()
        self._changed = asyncio.Condition()
        self._client: Client | None = None
        self._tree: _Tree | None = None
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._sinks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Supervisor:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def start(self) -> None:
        """Starts the server, unless it is started."""
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())

    async def stop(self) -> None:
        """Stops the server: ends its input, waits a little, then kills it with all that it has started."""
        self._stopping.set()
        if self._task is not None:
            await asyncio.shield(self._task)

    @property
    def pid(self) -> int | None:
        """The process of the server, while there is one."""
        return None if self._tree is None else self._tree.process.pid

    async def states(self) -> AsyncIterator[ServerState]:
        """The state of the server, then each one after it. A reader that is slow misses those in between."""
        seen: ServerState | None = None
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: self.state is not seen)
                seen = self.state
            yield seen

    async def connection(self, *, is_patient: bool = True) -> Client:
        """Waits until the server is up, and takes its connection; each is given out once. Without patience, a start that
        fails is an error at once."""
        self.start()

        def is_decided() -> bool:
            has_failed = self.state.name == "failed" and not is_patient
            return self._client is not None or has_failed or self._is_over()

        async with self._changed:
            await self._changed.wait_for(is_decided)
            client, self._client = self._client, None
        if client is None:
            raise StartError(self.state.error or "the server is stopped")
        return client

    def _is_over(self) -> bool:
        return self._task is None or self._task.done() or self._has_ended(self.state)

    def _has_ended(self, state: ServerState) -> bool:
        is_stopped = state.name == "stopped" and self._stopping.is_set()
        return is_stopped or (state.name == "failed" and state.delay is None)

    async def _set(self, state: ServerState) -> None:
        async with self._changed:
            self.state = state
            self._changed.notify_all()

    async def _run(self) -> None:
        backoff, loop = Backoff(), asyncio.get_running_loop()
        while not self._stopping.is_set():
            await self._set(ServerState("starting"))
            started = loop.time()
            error = await self._once()
            if self._stopping.is_set():
                break
            is_pipe = isinstance(self._launch, Pipe)
            is_final = is_pipe or (isinstance(error, StartError) and error.is_final)
            step = None if is_final else backoff.next(loop.time() - started, random.random())
            reason = "" if error is None else str(error)
            if step is None:
                end = "the other end of the pipe is gone" if is_pipe else "the server has ended too often"
                await self._set(ServerState("failed", error=reason or end))
                return
            attempt, delay = step
            name = "restarting" if error is None else "failed"
            await self._set(ServerState(name, attempt, delay, reason))
            with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), delay)
        await self._set(ServerState("stopped"))

    async def _once(self) -> CodexError | None:
        """Connects to the server once, and stays connected to the end; the reason if that failed."""
        try:
            match self._launch:
                case Listening(address=address, token=token, send_token=is_sent):
                    await self._use(dial(address, self._options, token=token, send_token=is_sent))
                case Pipe(reader=reader, writer=writer):
                    await self._use(connect(reader, writer, self._options))
                case launch:
                    await self._run_once(launch)
            return None
        except CodexError as error:
            return error
        finally:
            self._client = self._tree = None

    async def _use(self, connecting: Awaitable[Client]) -> None:
        """Waits for a connection, and for its end."""
        client = await self._unless_stopped(connecting)
        if client is not None:
            await self._give(client)
            client.close()
            await client.wait_closed(GRACE)
            client.abandon()

    async def _run_once(self, launch: Launch) -> None:
        client: Client | None = None
        tree = self._tree = await self._spawn(launch)
        try:
            client = await self._greet(tree, launch.program)
            if client is not None:
                await self._give(client, tree.exited)
                client.close()
                if not tree.exited.done():
                    await asyncio.wait((tree.exited,), timeout=GRACE)
        finally:
            await tree.end(client)

    async def _give(self, client: Client, *ends: asyncio.Future[None]) -> None:
        """Hands out a connection, and waits for its end."""
        async with self._changed:
            self._client = client
            self.state = ServerState("running")
            self._changed.notify_all()
        stopping = asyncio.ensure_future(self._stopping.wait())
        # A connection that was given up, because of noise, ends its server too.
        closed = asyncio.ensure_future(client.wait_closed())
        waits: list[asyncio.Future[Any]] = [*ends, stopping, closed]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        closed.cancel()

    async def _spawn(self, launch: Launch) -> _Tree:
        env = None if launch.env is None else dict(launch.env)
        pipe = asyncio.subprocess.PIPE
        loop = asyncio.get_running_loop()
        try:
            transport, streams = await loop.subprocess_exec(
                _Streams,
                launch.program,
                *launch.args,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                env=env,
                cwd=launch.cwd,
                start_new_session=IS_UNIX,
            )
        except (OSError, ValueError) as error:
            raise cannot_start(launch, error) from error
        process = asyncio.subprocess.Process(transport, streams, loop)
        if process.stderr is not None:
            task = asyncio.ensure_future(_pass_on(process.stderr, launch.on_stderr))
            self._sinks.add(task)
            task.add_done_callback(self._sinks.discard)
        return _Tree(process, transport, streams)

    async def _unless_stopped(self, connecting: Awaitable[Client]) -> Client | None:
        """The result of an attempt to connect; None if the supervisor is stopped meanwhile."""
        attempt = asyncio.ensure_future(connecting)
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((attempt, stopping), return_when=asyncio.FIRST_COMPLETED)
            return attempt.result() if attempt.done() else None
        finally:
            attempt.cancel()
            stopping.cancel()

    async def _greet(self, tree: _Tree, program: str) -> Client | None:
        """Shakes hands with a new server; None if it is stopped meanwhile."""
        process = tree.process
        if process.stdin is None or process.stdout is None:
            raise StartError(f"cannot start {program}: its streams are missing")
        try:
            return await self._unless_stopped(connect(process.stdout, process.stdin, self._options))
        except CodexError as error:
            code = process.returncode
            ended = "" if code is None else f" (it has ended with status {code})"
            raise StartError(f"the handshake with {program} has failed: {error}{ended}") from error


async def _pass_on(stderr: asyncio.StreamReader, take: Callable[[str], None] | None) -> None:
    """Reads standard error to its end, so that the server never waits for it."""
    rest = b""
    while data := await stderr.read(STDERR_LINE_BYTES):
        if take is None:
            continue
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) >= STDERR_LINE_BYTES:
            lines, rest = [*lines, rest], b""
        for line in lines:
            _give(take, line)
    if take is not None and rest:
        _give(take, rest)


def _give(take: Callable[[str], None], line: bytes) -> None:
    # A sink that fails loses its line; the server goes on.
    with contextlib.suppress(Exception):
        take(line.decode("utf-8", "replace").rstrip())
