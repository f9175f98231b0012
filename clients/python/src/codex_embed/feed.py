"""The queue of events between a connection and the program that reads them. A program that does not read costs a bounded
amount of memory and misses no end and no question: deltas that wait are merged, and beyond a bound they are left out,
because the end of their item carries the whole text."""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import islice

from .events import Delta, Diff, Event, Note, Other, Plan, RateLimits, Unknown, Usage

#: The most bytes of deltas that wait.
DELTA_BYTES = 4 * 1024 * 1024
#: The most events that wait; further ones that concern no thread are left out.
MOST_EVENTS = 10_000
#: The number of queued events that are searched for an earlier delta of the same item.
LOOK_BACK = 32


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


class _Pieces:
    """A delta whose text is joined only when it is read."""

    __slots__ = ("delta", "texts", "size")

    def __init__(self, delta: Delta) -> None:
        self.delta = delta
        self.texts = [delta.text]
        self.size = _size(delta.text)

    def continues_with(self, other: Delta) -> bool:
        own = self.delta
        return (
            own.item == other.item
            and own.part == other.part
            and own.index == other.index
            and own.teller == other.teller
            and own.turn == other.turn
            and own.thread == other.thread
        )

    def joined(self) -> Delta:
        own = self.delta
        return Delta(own.thread, own.turn, own.item, own.part, own.index, "".join(self.texts), own.teller)


def _replaces(old: Event | _Pieces, new: Event) -> bool:
    """Whether an event reports again everything that another one reported."""
    match old, new:
        case RateLimits(), RateLimits():
            return True
        case Usage(thread=thread), Usage(thread=other):
            return thread == other
        case (Diff(thread=thread, turn=turn), Diff(thread=other, turn=other_turn)) | (
            Plan(thread=thread, turn=turn),
            Plan(thread=other, turn=other_turn),
        ):
            return thread == other and turn == other_turn
    return False


class Events:
    """Events in the order in which the server sent them."""

    def __init__(self) -> None:
        self._waiting: deque[Event | _Pieces] = deque()
        self._delta_bytes = 0
        self._left_out = 0
        self._closed = False
        self._more = asyncio.Event()

    def push(self, event: Event) -> None:
        self._take(event)
        self._more.set()

    def close(self) -> None:
        self._closed = True
        self._more.set()

    def _take(self, event: Event) -> None:
        if isinstance(event, Delta):
            self._take_delta(event)
        elif isinstance(event, (Other, Unknown, Note)) and len(self._waiting) >= MOST_EVENTS:
            self._left_out += 1
        elif self._waiting and _replaces(self._waiting[-1], event):
            self._waiting[-1] = event
        else:
            self._waiting.append(event)

    def _take_delta(self, delta: Delta) -> None:
        size = _size(delta.text)
        if self._delta_bytes + size > DELTA_BYTES:
            self._left_out += 1
            return
        self._delta_bytes += size
        for earlier in islice(reversed(self._waiting), LOOK_BACK):
            if not isinstance(earlier, _Pieces):
                break
            if earlier.continues_with(delta):
                earlier.texts.append(delta.text)
                earlier.size += size
                return
        self._waiting.append(_Pieces(delta))

    def _pop(self) -> Event | None:
        if self._waiting:
            event = self._waiting.popleft()
            if isinstance(event, _Pieces):
                self._delta_bytes -= event.size
                return event.joined()
            return event
        if self._left_out == 0:
            return None
        left_out, self._left_out = self._left_out, 0
        return Note(f"{left_out} events were left out: they were not read")

    async def next(self) -> Event | None:
        """Waits for the next event; None when the connection is closed and all are read. Cancelling it loses nothing."""
        while True:
            event = self._pop()
            if event is not None:
                return event
            if self._closed:
                return None
            self._more.clear()
            await self._more.wait()

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> Event:
        event = await self.next()
        if event is None:
            raise StopAsyncIteration
        return event
