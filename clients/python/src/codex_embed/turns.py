"""A turn that runs, and its result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import events
from .errors import RefusedError, TurnError
from .events import Event, ItemCompleted, Teller, TurnEnded, Usage
from .feed import Events
from .options import RunInput, input_params
from .protocol import v2
from .state import end_of

if TYPE_CHECKING:
    from .aio import AsyncCodex


#: The waits before the attempts to interrupt a turn; some releases refuse the first moments of one.
INTERRUPTS = (0.0, 0.1, 0.3, 1.0, 3.0)


@dataclass(slots=True)
class TurnResult:
    """A turn that is over."""

    id: str
    #: `completed` or `interrupted`; a turn that failed raises `TurnError`.
    status: str
    error: Any = None
    #: The last message of the model.
    final_response: str | None = None
    #: The complete items, as v2 has them.
    items: list[Any] = field(default_factory=list)
    usage: v2.ThreadTokenUsage | None = None


class AsyncTurn:
    """A turn that was started. Its events can be read once, by `stream` or by `run`."""

    def __init__(self, codex: AsyncCodex, thread_id: str) -> None:
        self.thread_id = thread_id
        self.id = ""
        self._codex = codex
        self._events = Events()
        self._completed: set[str] = set()
        self._is_over = False

    def take(self, event: Event) -> None:
        """Takes an event of its thread. Which turn it belongs to is decided when it is read: events may come before the
        answer that names the turn."""
        if not self._is_over:
            self._events.push(event)

    def lose(self, reason: str) -> None:
        """Ends the turn: its server is gone for good, or does not know it any more."""
        if not self._is_over:
            self._events.push(TurnEnded(self.thread_id, self.id, "failed", {"message": reason}))

    def recover(self, answer: Any) -> None:
        """After a break: the end of the turn, and items that were completed meanwhile, are in the thread if the server
        does not send them again."""
        # A turn without a name is still to be sent, or sent again.
        if not self.id or not isinstance(answer, dict) or answer.get("reset") is not True:
            return
        thread = answer.get("thread")
        turns = thread.get("turns") if isinstance(thread, dict) else None
        known = [turn for turn in turns or [] if isinstance(turn, dict) and turn.get("id") == self.id]
        if not known:
            self.lose("the server does not know the turn any more")
            return
        is_over = known[0].get("status") != "inProgress"
        for item in known[0].get("items") or []:
            if isinstance(item, dict) and (is_over or item.get("status") not in (None, "inProgress")):
                self._events.push(ItemCompleted(self.thread_id, self.id, item, Teller.ITEMS))
        if is_over:
            self._events.push(TurnEnded(self.thread_id, self.id, end_of(known[0]), known[0].get("error")))

    async def stream(self) -> AsyncIterator[Event]:
        """The events of the turn, up to its end."""
        while not self._is_over:
            event = await self._events.next()
            if event is None:
                return
            if not self._is_own(event):
                continue
            self._is_over = isinstance(event, TurnEnded)
            if self._is_over:
                self._codex.forget(self)
            yield event

    def _is_own(self, event: Event) -> bool:
        if getattr(event, "turn", "") not in ("", self.id):
            return False
        # Older servers report everything in two dialects.
        if getattr(event, "teller", Teller.ITEMS) is not Teller.ITEMS:
            return False
        if isinstance(event, ItemCompleted):
            id = event.item.get("id")
            if isinstance(id, str):
                if id in self._completed:
                    return False
                self._completed.add(id)
        return True

    async def run(self) -> TurnResult:
        """Waits for the end of the turn. If it is cancelled, so is the turn."""
        result = TurnResult(self.id, "inProgress")
        failure = ""
        try:
            async for event in self.stream():
                match event:
                    case ItemCompleted(item=item):
                        result.items.append(item)
                        if item.get("type") == "agentMessage" and isinstance(item.get("text"), str):
                            result.final_response = item["text"]
                    case Usage(usage=usage):
                        result.usage = usage
                    case events.Error(message=message, will_retry=False):
                        failure = message
                    case TurnEnded(status=status, error=error):
                        result.status, result.error = status, error
        except asyncio.CancelledError:
            self._codex.in_background(self.interrupt_soon())
            raise
        if result.status not in ("completed", "interrupted"):
            told = result.error.get("message") if isinstance(result.error, dict) else None
            raise TurnError(str(told or failure or f"the turn is {result.status}"), result.error)
        return result

    async def interrupt_soon(self) -> None:
        """Interrupts the turn, again if the server is not ready for it."""
        for wait in INTERRUPTS:
            await asyncio.sleep(wait)
            try:
                await self.interrupt()
                return
            except RefusedError:
                continue

    async def steer(self, input: RunInput) -> Any:
        """Adds input to the turn while it runs."""
        params = {"threadId": self.thread_id, "expectedTurnId": self.id, "input": input_params(input)}
        return await (await self._codex.client()).call("turn/steer", params)

    async def interrupt(self) -> Any:
        """Ends the turn early; it still reports its end."""
        params = {"threadId": self.thread_id, "turnId": self.id}
        return await (await self._codex.client()).call("turn/interrupt", params)
