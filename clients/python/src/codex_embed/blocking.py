"""The same without asyncio: each object holds its asynchronous twin, which runs on a loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from .aio import LOGIN_SECONDS, AsyncCodex, AsyncLogin, AsyncThread, LoginResult
from .approvals import Handler
from .errors import CodexError
from .events import Event
from .options import CodexConfig, ListOptions, RunInput, ThreadOptions, TurnOptions
from .protocol import v2
from .turns import AsyncTurn, TurnResult

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")


class _Loop:
    """An event loop in a thread that does not keep the program from ending."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="codex-embed", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits for work on the loop. If the wait is interrupted, so is the work."""
        if threading.current_thread() is self._thread or not self._thread.is_alive():
            work.close()
            is_own = threading.current_thread() is self._thread
            raise CodexError("use AsyncCodex in asynchronous handlers" if is_own else "Codex is closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


class Codex:
    """Starts threads on a server that it runs."""

    def __init__(self, config: CodexConfig | None = None, *, approvals: Handler | None = None) -> None:
        self._loop = _Loop()
        self._closed = False
        self._codex = AsyncCodex(config, approvals=approvals)
        try:
            self._loop.run(self._codex.client())
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Codex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the server."""
        if not self._closed:
            self._closed = True
            self._loop.run(self._codex.close())
            self._loop.stop()

    @property
    def metadata(self) -> Any:
        """The server's answer to `initialize`."""
        return self._codex.metadata

    @property
    def pid(self) -> int | None:
        """The process of the server, while there is one."""
        return self._codex.pid

    def call(self, method: str, params: Any = None) -> Any:
        """Calls any method of the server."""

        async def call() -> Any:
            return await (await self._codex.client()).call(method, params)

        return self._loop.run(call())

    def subscribe(self, take: Callable[[Event], object]) -> Callable[[], None]:
        """Has a function called with every event, in the thread of the loop; it must not wait."""
        return self._codex.subscribe(take)

    def thread_start(self, **options: Unpack[ThreadOptions]) -> Thread:
        """A new thread."""
        return Thread(self._loop, self._loop.run(self._codex.thread_start(**options)))

    def thread_resume(self, thread_id: str, **options: Unpack[ThreadOptions]) -> Thread:
        """A stored thread, to continue it."""
        return Thread(self._loop, self._loop.run(self._codex.thread_resume(thread_id, **options)))

    def thread_fork(self, thread_id: str, **options: Unpack[ThreadOptions]) -> Thread:
        """A copy of a thread, which continues by itself."""
        return Thread(self._loop, self._loop.run(self._codex.thread_fork(thread_id, **options)))

    def thread_list(self, **options: Unpack[ListOptions]) -> v2.ThreadListResponse:
        """A page of threads: `data` and `nextCursor`."""
        return self._loop.run(self._codex.thread_list(**options))

    def thread_archive(self, thread_id: str) -> None:
        self._loop.run(self._codex.thread_archive(thread_id))

    def thread_unarchive(self, thread_id: str) -> Thread:
        return Thread(self._loop, self._loop.run(self._codex.thread_unarchive(thread_id)))

    def thread_delete(self, thread_id: str) -> None:
        """Deletes a thread for good."""
        self._loop.run(self._codex.thread_delete(thread_id))

    def models(self, *, include_hidden: bool = False) -> v2.ModelListResponse:
        return self._loop.run(self._codex.models(include_hidden=include_hidden))

    def account(self, *, refresh_token: bool = False) -> v2.GetAccountResponse:
        return self._loop.run(self._codex.account(refresh_token=refresh_token))

    def login_api_key(self, api_key: str) -> None:
        """Stores a key."""
        self._loop.run(self._codex.login_api_key(api_key))

    def login_chatgpt(self) -> Login:
        """Logs in with a browser, which has to open `auth_url`."""
        return Login(self._loop, self._loop.run(self._codex.login_chatgpt()))

    def login_chatgpt_device_code(self) -> Login:
        """Logs in on another device: with `user_code`, at `verification_url`."""
        return Login(self._loop, self._loop.run(self._codex.login_chatgpt_device_code()))

    def logout(self) -> None:
        self._loop.run(self._codex.logout())


class Login:
    """A login that has started."""

    def __init__(self, loop: _Loop, login: AsyncLogin) -> None:
        self._loop = loop
        self._login = login
        self.login_id = login.login_id
        self.auth_url = login.auth_url
        self.verification_url = login.verification_url
        self.user_code = login.user_code

    def wait(self, deadline: float = LOGIN_SECONDS) -> LoginResult:
        """Waits for the end of the login."""
        return self._loop.run(self._login.wait(deadline))

    def cancel(self) -> Any:
        return self._loop.run(self._login.cancel())


class Thread:
    """A thread."""

    def __init__(self, loop: _Loop, thread: AsyncThread) -> None:
        self._loop = loop
        self._thread = thread
        self.id = thread.id

    def run(self, input: RunInput, *, timeout: float | None = None, **options: Unpack[TurnOptions]) -> TurnResult:
        """Runs a turn to its end. A timeout in seconds interrupts it, and so does Ctrl-C."""
        return self._loop.run(self._thread.run(input, timeout=timeout, **options))

    def turn(self, input: RunInput, **options: Unpack[TurnOptions]) -> Turn:
        """Starts a turn."""
        return Turn(self._loop, self._loop.run(self._thread.turn(input, **options)))

    def read(self, *, include_turns: bool = False) -> v2.ThreadReadResponse:
        return self._loop.run(self._thread.read(include_turns=include_turns))

    def set_name(self, name: str) -> None:
        self._loop.run(self._thread.set_name(name))

    def compact(self) -> None:
        """Replaces the conversation by a summary of it."""
        self._loop.run(self._thread.compact())

    def fork(self, **options: Unpack[ThreadOptions]) -> Thread:
        return Thread(self._loop, self._loop.run(self._thread.fork(**options)))

    def archive(self) -> None:
        self._loop.run(self._thread.archive())

    def delete(self) -> None:
        self._loop.run(self._thread.delete())

    def set_goal(self, objective: str, *, token_budget: int | None = None) -> v2.ThreadGoal:
        """Gives the thread a goal, which it pursues in turns of its own."""
        return self._loop.run(self._thread.set_goal(objective, token_budget=token_budget))

    def goal(self) -> v2.ThreadGoal | None:
        return self._loop.run(self._thread.goal())

    def pause_goal(self) -> v2.ThreadGoal:
        return self._loop.run(self._thread.pause_goal())

    def clear_goal(self) -> None:
        self._loop.run(self._thread.clear_goal())


class Turn:
    """A turn that was started. Its events can be read once, by `stream` or by `run`."""

    def __init__(self, loop: _Loop, turn: AsyncTurn) -> None:
        self._loop = loop
        self._turn = turn
        self.id = turn.id
        self.thread_id = turn.thread_id

    def stream(self) -> Iterator[Event]:
        """The events of the turn, up to its end."""
        events = self._turn.stream().__aiter__()

        async def following() -> Event | None:
            return await anext(events, None)

        while (event := self._loop.run(following())) is not None:
            yield event

    def run(self) -> TurnResult:
        """Waits for the end of the turn."""
        return self._loop.run(self._turn.run())

    def steer(self, input: RunInput) -> Any:
        """Adds input to the turn while it runs."""
        return self._loop.run(self._turn.steer(input))

    def interrupt(self) -> Any:
        """Ends the turn early; it still reports its end."""
        return self._loop.run(self._turn.interrupt())
