"""The threads that a program follows, across breaks of the connection. A thread is in one state of its life, and only
known steps lead to the next. After a break each thread is subscribed to from its last number; turns that were sent and
not answered are sent again under their own name, so that a server which has one already does not take it twice."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol

from .errors import CodexError, RefusedError
from .events import Event, Other, TurnEnded, TurnStarted
from .shapes import thread_id

INVALID_REQUEST = -32600
NO_METHOD = -32601


class Life(Enum):
    """The life of a thread."""

    CREATED = "created"
    CONFIGURED = "configured"
    ACTIVE = "active"
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    ARCHIVED = "archived"

    def may_become(self, to: Life) -> bool:
        """Whether a step leads from here to another state."""
        return to in _STEPS[self]


_RESTING = frozenset((Life.ACTIVE, Life.ARCHIVED))
_STEPS: dict[Life, frozenset[Life]] = {
    Life.CREATED: frozenset((Life.CONFIGURED,)),
    Life.CONFIGURED: _RESTING,
    Life.ACTIVE: frozenset((Life.COMPLETED, Life.INTERRUPTED)),
    Life.COMPLETED: _RESTING,
    Life.INTERRUPTED: _RESTING,
    Life.ARCHIVED: frozenset(),
}


class NoStep(CodexError):
    """A step that the life of a thread does not have."""

    def __init__(self, thread: str, start: Life, to: Life) -> None:
        super().__init__(f"thread {thread} is {start.value} and cannot become {to.value}")


class Caller(Protocol):
    """The part of a client that a registry uses."""

    async def call(self, method: str, params: Any = None) -> Any: ...


class _Followed:
    __slots__ = ("life", "log", "after", "current", "last", "is_subscribed", "running", "idle_at", "cut", "unanswered")

    def __init__(self) -> None:
        self.life = Life.CREATED
        #: The last number that was seen, and the log that it counts in.
        self.log: str | None = None
        self.after: int | None = None
        #: The log that the numbers of this connection count in, and the last of them.
        self.current: str | None = None
        self.last = -1
        #: Whether the answer to the last subscription was taken.
        self.is_subscribed = False
        #: The turn that was seen to start, and not to end.
        self.running: str | None = None
        #: The last number when the server answered the last subscription, if it ran no turn then.
        self.idle_at: int | None = None
        #: The turn that had started by then, and was not seen to end.
        self.cut: str | None = None
        #: Turns that were sent and not answered, by their `clientUserMessageId`.
        self.unanswered: dict[str, dict[str, Any]] = {}

    def subscribed(self, log: str, seq: int | None, is_reset: bool) -> None:
        """Takes the answer to a subscription. Unless it replaces everything, events up to its number are still to come."""
        self.is_subscribed = True
        if log != self.current or is_reset:
            self.current, self.last = log, -1
        if is_reset:
            self.log, self.after = log, seq

    def ended(self, turn: str) -> None:
        """Takes the end of a turn."""
        self.running = None if self.running == turn else self.running
        self.cut = None if self.cut == turn else self.cut


class Registry:
    """The threads that a program follows."""

    def __init__(self) -> None:
        self._threads: dict[str, _Followed] = {}

    def follow(self, thread: str) -> None:
        """Follows a thread that was created."""
        self._threads.setdefault(thread, _Followed())

    def forget(self, thread: str) -> None:
        """Stops following a thread."""
        self._threads.pop(thread, None)

    def life(self, thread: str) -> Life | None:
        followed = self._threads.get(thread)
        return None if followed is None else followed.life

    def step(self, thread: str, to: Life) -> None:
        """Takes a step in the life of a thread; one that does not exist is refused and changes nothing."""
        followed = self._threads.get(thread)
        if followed is None or not followed.life.may_become(to):
            raise NoStep(thread, Life.CREATED if followed is None else followed.life, to)
        followed.life = to

    def subscribed(self, thread: str, answer: Any) -> None:
        """Takes the answer to `thread/subscribe`."""
        self.follow(thread)
        log, seq = (answer.get("logId"), answer.get("seq")) if isinstance(answer, dict) else (None, None)
        if isinstance(log, str):
            number = seq if type(seq) is int else None
            followed, is_reset = self._threads[thread], answer.get("reset") is True
            followed.subscribed(log, number, is_reset)
            known = answer.get("thread")
            known = known if isinstance(known, dict) else {}
            status, turns = known.get("status"), known.get("turns")
            # A thread that replaces everything tells the end of each turn itself.
            is_idle = not is_reset and isinstance(status, dict) and status.get("type") == "idle"
            followed.idle_at = number if is_idle else None
            followed.cut = followed.running if is_idle else None
            if is_reset:
                last = turns[-1] if isinstance(turns, list) and turns else None
                is_running = isinstance(last, dict) and last.get("status") == "inProgress"
                followed.running = last.get("id") if is_running and isinstance(last, dict) else None

    def note(self, event: Event, seq: int | None = None) -> TurnEnded | None:
        """Takes an event with its number. Once everything that was missed is told, a turn that runs nowhere any more has
        ended: its end is returned, because nothing else tells it."""
        if isinstance(event, Other) and event.method == "thread/caughtUp":
            thread = thread_id(event.params)
            followed = self._threads.get(thread)
            if followed is not None and event.params.get("logId") == followed.current:
                # Everything up to its number is complete.
                up_to = event.params.get("seq")
                if type(up_to) is int:
                    self.saw(thread, up_to)
            if followed is not None and followed.cut is not None:
                turn = followed.cut
                followed.ended(turn)
                return TurnEnded(thread, turn, "interrupted", None)
        elif isinstance(event, (TurnStarted, TurnEnded)):
            followed = self._threads.get(event.thread)
            if followed is not None and isinstance(event, TurnStarted):
                followed.running = event.turn
                # One that started later runs; the server may say that it has caught up only after its start.
                if followed.idle_at is not None and seq is not None and seq <= followed.idle_at:
                    followed.cut = event.turn
            elif followed is not None:
                followed.ended(event.turn)
        return None

    def saw(self, thread: str, seq: int) -> bool:
        """Takes the number of an event; False if it was reported already."""
        followed = self._threads.get(thread)
        if followed is None or followed.current is None:
            return True
        if seq <= followed.last:
            return False
        followed.last = followed.after = seq
        followed.log = followed.current
        return True

    def sending(self, thread: str, params: dict[str, Any]) -> str:
        """Records a turn that is about to be sent. Its parameters get a `clientUserMessageId` if they have none."""
        name: str = params.setdefault("clientUserMessageId", uuid.uuid4().hex)
        self.follow(thread)
        self._threads[thread].unanswered[name] = params
        return name

    def answered(self, thread: str, name: str) -> None:
        """A turn was answered, or refused for good."""
        followed = self._threads.get(thread)
        if followed is not None:
            followed.unanswered.pop(name, None)

    async def recover(
        self, client: Caller, recovered: Callable[[str, Any], None] | None = None
    ) -> dict[str, str]:
        """After a break: subscribes to each thread from its last number, and sends again what was not answered. Events
        and open questions arrive as the server sends them again; an answer with `reset` replaces what was known, and is
        passed on. Returns the threads that the server refuses, with its reasons. If the connection breaks again, this
        fails and is to be called again."""
        refused: dict[str, str] = {}
        for thread, followed in list(self._threads.items()):
            if followed.life is Life.ARCHIVED:
                continue
            try:
                answer = await self._subscribe(client, thread, followed)
            except RefusedError as error:
                refused[thread] = str(error)
                continue
            if recovered is not None:
                recovered(thread, answer)
            for name, params in list(followed.unanswered.items()):
                # A turn that is refused is answered: sending it once more would not help.
                with contextlib.suppress(RefusedError):
                    await client.call("turn/start", params)
                followed.unanswered.pop(name, None)
        return refused

    async def _subscribe(self, client: Caller, thread: str, followed: _Followed) -> Any:
        params = {"threadId": thread, "after": followed.after, "logId": followed.log}
        followed.is_subscribed = False
        try:
            answer = await client.call("thread/subscribe", params)
        except RefusedError as error:
            if error.code not in (INVALID_REQUEST, NO_METHOD):
                raise
            # A server of another release has no numbers; it sends the whole thread.
            followed.current = None
            answer = await client.call("thread/resume", {"threadId": thread})
            return {**answer, "reset": True} if isinstance(answer, dict) else answer
        # The connection has told it already, if this registry is in its options.
        if not followed.is_subscribed:
            self.subscribed(thread, answer)
        return answer
