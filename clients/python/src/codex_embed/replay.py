"""A recorded thread, replayed without a model or a server: `codex replay` prints it, and this reads it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Literal

from .errors import CodexError
from .events import Event
from .state import State
from .supervisor import Launch, cannot_start
from .transcript import Transcript, event_of

#: The longest pause between two lines, in seconds. The program shortens those of the original to a minute.
PAUSE = 90.0
READ_BYTES = 64 * 1024
#: The most bytes of an error that are kept.
ERROR_BYTES = 16 * 1024


async def replay(
    thread: str, launch: Launch | None = None, *, speed: Literal["instant", "original"] = "instant"
) -> AsyncIterator[Event]:
    """The events of a thread, named by its file, its id or its name. The arguments of the launch come before those of
    the replay."""
    launch = launch or Launch(args=())
    process = await _start(launch, thread, speed)
    errors = asyncio.ensure_future(_errors(process))
    transcript = Transcript()
    try:
        while data := await _read(process):
            for message in transcript.push(data):
                if (event := event_of(message)) is not None:
                    yield event
        for message in transcript.finish():
            if (event := event_of(message)) is not None:
                yield event
        status = await asyncio.wait_for(process.wait(), PAUSE)
        if status != 0:
            raise CodexError(f"the replay has ended with status {status}: {await errors}")
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        errors.cancel()


async def replayed(thread: str, launch: Launch | None = None) -> State:
    """The state that a replay leaves."""
    state = State()
    async for event in replay(thread, launch):
        state.apply(event)
    return state


async def _start(launch: Launch, thread: str, speed: str) -> asyncio.subprocess.Process:
    args = [*launch.args, "replay", "--dialect", "v2", "--speed", speed, "--", thread]
    env = None if launch.env is None else dict(launch.env)
    pipe = asyncio.subprocess.PIPE
    try:
        return await asyncio.create_subprocess_exec(
            launch.program,
            *args,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            env=env,
            cwd=launch.cwd,
        )
    except (OSError, ValueError) as error:
        raise cannot_start(launch, error) from error


async def _read(process: asyncio.subprocess.Process) -> bytes:
    if process.stdout is None:
        return b""
    try:
        return await asyncio.wait_for(process.stdout.read(READ_BYTES), PAUSE)
    except (asyncio.TimeoutError, TimeoutError):
        raise CodexError(f"the replay has paused for longer than {PAUSE:g} s") from None


async def _errors(process: asyncio.subprocess.Process) -> str:
    """The beginning of standard error, which is read to its end."""
    kept = b""
    while process.stderr is not None and (data := await process.stderr.read(READ_BYTES)):
        kept = (kept + data)[:ERROR_BYTES]
    return kept.decode("utf-8", "replace").strip()
