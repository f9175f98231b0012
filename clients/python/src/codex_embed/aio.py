"""The conventions of the official SDK, on asyncio: `AsyncCodex`, `thread_start`, `run`, `turn`; and what its users ask
for: fork, list, delete, goals, approvals."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from .approvals import Handler
from .connection import Client, Options
from .errors import ClosedError, CodexError, StartError
from .events import Event, Note, Other
from .options import (
    CodexConfig,
    ListOptions,
    RunInput,
    ThreadOptions,
    TurnOptions,
    camel,
    input_params,
    thread_params,
    turn_params,
)
from .protocol import v2
from .registry import Registry
from .supervisor import Launch, Supervisor
from .turns import AsyncTurn, TurnResult

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: The time limit for the end of a turn that was interrupted, in seconds.
END_SECONDS = 5.0
#: The most events that a subscriber may not have finished with; it misses further ones.
MOST_UNFINISHED = 1000
#: The time limit of a login in seconds.
LOGIN_SECONDS = 15 * 60.0


def launch_of(config: CodexConfig) -> Launch:
    """The command line of a server."""
    program, args = config.codex_bin or "codex", ["app-server"]
    if config.launch_args_override:
        program, *args = config.launch_args_override
    else:
        args = [word for override in config.config_overrides for word in ("--config", override)] + args
    env = None if config.env is None else {**os.environ, **config.env}
    return Launch(program, args, env, config.cwd, config.on_stderr)


class AsyncCodex:
    """Starts threads on a server that it runs. A server that dies is restarted, and turns continue where it can tell."""

    def __init__(self, config: CodexConfig | None = None, *, approvals: Handler | None = None) -> None:
        self._config = config or CodexConfig()
        self._approvals = approvals or self._config.approvals
        self._registry = Registry()
        self._supervisor: Supervisor | None = None
        self._pumping: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Client] | None = None
        self._has_run = False
        self._failure = "the server is stopped"
        self._turns: dict[str, list[AsyncTurn]] = {}
        self._subscribers: list[Callable[[Event], object]] = []
        #: The subscribers that have failed before.
        self._failing: list[Callable[[Event], object]] = []
        #: How many events each asynchronous subscriber has not finished with.
        self._unfinished: dict[Callable[[Event], object], int] = {}
        self._background: set[asyncio.Future[Any]] = set()

    async def __aenter__(self) -> AsyncCodex:
        await self.client()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def client(self) -> Client:
        """The connection, for everything that has no convention. Waits while a server is restarted."""
        if self._pumping is None:
            self._start()
        while True:
            if self._ready is None:
                raise StartError(self._failure)
            client = await asyncio.shield(self._ready)
            if not client.is_closed:
                return client
            # Its end was not handled yet.
            await asyncio.sleep(0)

    @property
    def metadata(self) -> Any:
        """The server's answer to `initialize`."""
        if self._ready is None or not self._ready.done():
            raise CodexError("there is no connection yet")
        return self._ready.result().server

    @property
    def pid(self) -> int | None:
        """The process of the server, while there is one."""
        return None if self._supervisor is None else self._supervisor.pid

    async def close(self) -> None:
        """Ends the server."""
        if self._supervisor is not None:
            await self._supervisor.stop()
        if self._pumping is not None:
            await asyncio.wait((self._pumping,))
        for task in list(self._background):
            task.cancel()

    def subscribe(self, take: Callable[[Event], object]) -> Callable[[], None]:
        """Has a function called with every event; returns one that ends it. If it fails, the others get a note, once."""
        self._subscribers.append(take)

        def end() -> None:
            with contextlib.suppress(ValueError):
                self._subscribers.remove(take)
            with contextlib.suppress(ValueError):
                self._failing.remove(take)

        return end

    def _start(self) -> None:
        config = self._config
        options = Options(
            name=config.client_name,
            version=config.client_version,
            title=config.client_title,
            experimental=config.experimental_api,
            deadline=config.deadline,
            approvals=self._approvals,
            approval_deadline=config.approval_deadline,
            registry=self._registry,
        )
        self._supervisor = Supervisor(launch_of(config), options)
        self._ready = asyncio.get_running_loop().create_future()
        self._pumping = asyncio.ensure_future(self._pump(self._supervisor))

    async def _pump(self, supervisor: Supervisor) -> None:
        """Passes on the events of each connection in turn."""
        while True:
            try:
                # Nobody waits for a program that is missing; one that has run before may come back.
                client = await supervisor.connection(is_patient=self._has_run)
            except CodexError as error:
                self._fail(error)
                return await supervisor.stop()
            self._has_run = True
            recovering = asyncio.ensure_future(self._recover(client))
            while (event := await client.events.next()) is not None:
                self._dispatch(event)
            recovering.cancel()
            self._ready = asyncio.get_running_loop().create_future()

    def _fail(self, error: CodexError) -> None:
        for turns in list(self._turns.values()):
            for turn in list(turns):
                turn.lose(str(error))
        ready, self._ready, self._failure = self._ready, None, str(error)
        if ready is not None and not ready.done():
            ready.set_exception(error)
            # Nobody may be waiting for it.
            ready.exception()

    async def _recover(self, client: Client) -> None:
        def recovered(thread: str, answer: Any) -> None:
            for turn in list(self._turns.get(thread, ())):
                turn.recover(answer)

        try:
            lost = await self._registry.recover(client, recovered)
        except ClosedError:
            return
        except CodexError as error:
            return self._fail(error)
        for thread, reason in lost.items():
            for turn in list(self._turns.get(thread, ())):
                turn.lose(reason)
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(client)

    def _dispatch(self, event: Event) -> None:
        for turn in list(self._turns.get(getattr(event, "thread", ""), ())):
            turn.take(event)
        for take in list(self._subscribers):
            self._tell(take, event)

    def _tell(self, take: Callable[[Event], object], event: Event) -> None:
        """Tells a subscriber of an event. One that fails misses the event; the others do not."""
        if self._unfinished.get(take, 0) >= MOST_UNFINISHED:
            return self._note(take, "it is too slow")
        try:
            taken = take(event)
        except Exception as error:
            return self._note(take, error)
        if inspect.isawaitable(taken):
            self._unfinished[take] = self._unfinished.get(take, 0) + 1
            self.in_background(self._finish(take, taken))

    async def _finish(self, take: Callable[[Event], object], taken: Awaitable[object]) -> None:
        try:
            await taken
        except Exception as error:
            self._note(take, error)
        finally:
            left = self._unfinished.pop(take, 1) - 1
            if left > 0:
                self._unfinished[take] = left

    def _note(self, take: Callable[[Event], object], error: Exception | str) -> None:
        """Tells the others of a subscriber that has failed, once."""
        if take in self._failing:
            return
        self._failing.append(take)
        note = Note(f"a subscriber has failed: {error}")
        for other in list(self._subscribers):
            if other is not take:
                self._tell(other, note)

    def follow(self, turn: AsyncTurn) -> None:
        """Gives a turn the events of its thread."""
        self._turns.setdefault(turn.thread_id, []).append(turn)

    def forget(self, turn: AsyncTurn) -> None:
        turns = self._turns.get(turn.thread_id, [])
        if turn in turns:
            turns.remove(turn)
        if not turns:
            self._turns.pop(turn.thread_id, None)

    def in_background(self, work: Coroutine[Any, Any, Any]) -> None:
        """Does something that nobody waits for."""

        async def quietly() -> None:
            with contextlib.suppress(CodexError):
                await work

        task = asyncio.ensure_future(quietly())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _call(self, method: str, params: Any = None) -> Any:
        return await (await self.client()).call(method, params)

    async def _open(self, method: str, params: dict[str, Any]) -> AsyncThread:
        answer = await self._call(method, params)
        id = str(answer["thread"]["id"])
        self._registry.follow(id)
        return AsyncThread(self, id)

    async def thread_start(self, **options: Unpack[ThreadOptions]) -> AsyncThread:
        """A new thread."""
        return await self._open("thread/start", thread_params(options))

    async def thread_resume(self, thread_id: str, **options: Unpack[ThreadOptions]) -> AsyncThread:
        """A stored thread, to continue it."""
        return await self._open("thread/resume", {"threadId": thread_id, **thread_params(options)})

    async def thread_fork(self, thread_id: str, **options: Unpack[ThreadOptions]) -> AsyncThread:
        """A copy of a thread, which continues by itself."""
        return await self._open("thread/fork", {"threadId": thread_id, **thread_params(options)})

    async def thread_list(self, **options: Unpack[ListOptions]) -> v2.ThreadListResponse:
        """A page of threads: `data` and `nextCursor`."""
        return cast("v2.ThreadListResponse", await self._call("thread/list", camel(options)))

    async def thread_archive(self, thread_id: str) -> None:
        await self._call("thread/archive", {"threadId": thread_id})
        self._registry.forget(thread_id)

    async def thread_unarchive(self, thread_id: str) -> AsyncThread:
        await self._call("thread/unarchive", {"threadId": thread_id})
        return AsyncThread(self, thread_id)

    async def thread_delete(self, thread_id: str) -> None:
        """Deletes a thread for good."""
        await self._call("thread/delete", {"threadId": thread_id})
        self._registry.forget(thread_id)

    async def models(self, *, include_hidden: bool = False) -> v2.ModelListResponse:
        answer = await self._call("model/list", {"includeHidden": include_hidden})
        return cast("v2.ModelListResponse", answer)

    async def account(self, *, refresh_token: bool = False) -> v2.GetAccountResponse:
        return cast("v2.GetAccountResponse", await self._call("account/read", {"refreshToken": refresh_token}))

    async def login_api_key(self, api_key: str) -> None:
        """Stores a key."""
        await self._call("account/login/start", {"type": "apiKey", "apiKey": api_key})

    async def login_chatgpt(self) -> AsyncLogin:
        """Logs in with a browser, which has to open `auth_url`."""
        return await self._login("chatgpt")

    async def login_chatgpt_device_code(self) -> AsyncLogin:
        """Logs in on another device: with `user_code`, at `verification_url`."""
        return await self._login("chatgptDeviceCode")

    async def _login(self, kind: str) -> AsyncLogin:
        ended: list[dict[str, Any]] = []
        arrived = asyncio.Event()

        def take(event: Event) -> None:
            if isinstance(event, Other) and event.method == "account/login/completed":
                ended.append(event.params if isinstance(event.params, dict) else {})
                arrived.set()

        # It may end before the answer to its start is read.
        end = self.subscribe(take)
        try:
            answer = await self._call("account/login/start", {"type": kind})
        except BaseException:
            end()
            raise
        return AsyncLogin(self, answer, ended, arrived, end)

    async def logout(self) -> None:
        await self._call("account/logout")


@dataclass(slots=True)
class LoginResult:
    """The end of a login."""

    login_id: str | None
    success: bool
    error: str | None


class AsyncLogin:
    """A login that has started."""

    def __init__(
        self,
        codex: AsyncCodex,
        answer: dict[str, Any],
        ended: list[dict[str, Any]],
        arrived: asyncio.Event,
        end: Callable[[], None],
    ) -> None:
        self.login_id = str(answer.get("loginId", ""))
        self.auth_url = str(answer.get("authUrl", ""))
        self.verification_url = str(answer.get("verificationUrl", ""))
        self.user_code = str(answer.get("userCode", ""))
        self._codex = codex
        self._ended = ended
        self._arrived = arrived
        self._end = end

    async def wait(self, deadline: float = LOGIN_SECONDS) -> LoginResult:
        """Waits for the end of the login."""
        try:
            return await asyncio.wait_for(self._wait(), deadline)
        except (asyncio.TimeoutError, TimeoutError):
            raise CodexError(f"the login was not completed within {deadline:g} s") from None
        finally:
            self._end()

    async def _wait(self) -> LoginResult:
        while True:
            for params in self._ended:
                id = params.get("loginId")
                if id in (None, self.login_id):
                    return LoginResult(id, params.get("success") is True, params.get("error"))
            self._arrived.clear()
            await self._arrived.wait()

    async def cancel(self) -> Any:
        self._end()
        return await (await self._codex.client()).call("account/login/cancel", {"loginId": self.login_id})


class AsyncThread:
    """A thread."""

    def __init__(self, codex: AsyncCodex, id: str) -> None:
        self.id = id
        self._codex = codex

    async def run(
        self, input: RunInput, *, timeout: float | None = None, **options: Unpack[TurnOptions]
    ) -> TurnResult:
        """Runs a turn to its end. A timeout in seconds interrupts it."""
        turn = await self.turn(input, **options)
        running = asyncio.ensure_future(turn.run())
        try:
            await asyncio.wait((running,), timeout=timeout)
            if running.done():
                return running.result()
            # Its end is waited for, so that the next turn does not join it.
            await turn.interrupt_soon()
            await asyncio.wait((running,), timeout=END_SECONDS)
            raise CodexError(f"the turn was not over within {timeout:g} s")
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError, CodexError):
                await running

    async def turn(self, input: RunInput, **options: Unpack[TurnOptions]) -> AsyncTurn:
        """Starts a turn."""
        turn = AsyncTurn(self._codex, self.id)
        params = {"threadId": self.id, "input": input_params(input), **turn_params(options)}
        # A server that was restarted knows by this name whether it has the turn already.
        params["clientUserMessageId"] = uuid.uuid4().hex
        self._codex.follow(turn)
        try:
            await self._send(turn, params)
        except BaseException:
            self._codex.forget(turn)
            raise
        return turn

    async def _send(self, turn: AsyncTurn, params: dict[str, Any]) -> None:
        """Starts a turn, again if the connection breaks."""
        is_repeated = False
        while True:
            client = await self._codex.client()
            try:
                turn.id = str((await client.call("turn/start", params))["turn"]["id"])
                if is_repeated:
                    # The server that is gone may have taken the turn; then it is over, and no event will say so.
                    turn.recover({**(await self.read(include_turns=True)), "reset": True})
                return
            except ClosedError:
                is_repeated = True

    async def read(self, *, include_turns: bool = False) -> v2.ThreadReadResponse:
        answer = await self._call("thread/read", includeTurns=include_turns)
        return cast("v2.ThreadReadResponse", answer)

    async def set_name(self, name: str) -> None:
        await self._call("thread/name/set", name=name)

    async def compact(self) -> None:
        """Replaces the conversation by a summary of it."""
        await self._call("thread/compact/start")

    async def fork(self, **options: Unpack[ThreadOptions]) -> AsyncThread:
        return await self._codex.thread_fork(self.id, **options)

    async def archive(self) -> None:
        await self._codex.thread_archive(self.id)

    async def delete(self) -> None:
        await self._codex.thread_delete(self.id)

    async def set_goal(self, objective: str, *, token_budget: int | None = None) -> v2.ThreadGoal:
        """Gives the thread a goal, which it pursues in turns of its own."""
        answer = await self._call("thread/goal/set", objective=objective, **camel({"token_budget": token_budget}))
        return cast("v2.ThreadGoal", answer["goal"])

    async def goal(self) -> v2.ThreadGoal | None:
        answer = await self._call("thread/goal/get")
        return cast("v2.ThreadGoal | None", answer.get("goal"))

    async def pause_goal(self) -> v2.ThreadGoal:
        answer = await self._call("thread/goal/set", status="paused")
        return cast("v2.ThreadGoal", answer["goal"])

    async def clear_goal(self) -> None:
        await self._call("thread/goal/clear")

    async def _call(self, method: str, **params: Any) -> Any:
        return await (await self._codex.client()).call(method, {"threadId": self.id, **params})
