"""Threads, turns and items as events leave them: the state that `thread/read` would show. It depends on the events
alone, not on when they came or how their bytes were cut."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from . import events
from .events import KIND_OF_PART, Delta, Event, Members, RequestId, Teller

#: The most errors of a thread, and the most unknown methods, that are kept.
MOST_NOTED = 100
MOST_PARTS = 10_000
#: The questions of a thread that are kept; the oldest give way.
MOST_QUESTIONS = 1000
#: The last items of a turn among which one without a name is looked for.
LOOK_BACK = 256
UNNAMED_KINDS = ("agentMessage", "reasoning", "userMessage")


def _text_of(value: Any, name: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


class Item:
    """An item, with the dialect that reported it best so far and the one that sends its deltas."""

    __slots__ = ("id", "_members", "is_complete", "teller", "deltas", "began_ms", "_pieces")

    def __init__(self, id: str, members: Members, is_complete: bool, teller: Teller) -> None:
        self.id = id
        self._members = members
        self.is_complete = is_complete
        self.teller = teller
        self.deltas: Teller | None = None
        #: The time of its beginning, in milliseconds of Unix time, if the server reported it.
        self.began_ms: int | None = None
        # Text that is not part of a member yet. Joining it for each delta would take quadratic time.
        self._pieces: dict[tuple[str, int], list[str]] = {}

    @property
    def members(self) -> Members:
        """The members, with all deltas."""
        for (name, at), pieces in self._pieces.items():
            more = "".join(pieces)
            if at < 0:
                self._members[name] = _text_of(self._members, name) + more
            else:
                self._grow_at(name, at, more)
        self._pieces.clear()
        return self._members

    @members.setter
    def members(self, members: Members) -> None:
        self._pieces.clear()
        self._members = members

    @property
    def kind(self) -> str:
        return _text_of(self._members, "type")

    def append(self, part: str, index: int, more: str) -> None:
        # An item of another kind than its delta assumes has its text where its kind has it.
        if part == "message" and self.kind == "reasoning":
            part, index = "summary", 0
        if part in ("message", "plan"):
            key = ("text", -1)
        elif part == "output":
            key = ("aggregatedOutput", -1)
        else:
            key = ("summary" if part == "summary" else "content", min(index, MOST_PARTS))
        self._pieces.setdefault(key, []).append(more)

    def _grow_at(self, name: str, index: int, more: str) -> None:
        known = self._members.get(name)
        parts = list(known) if isinstance(known, list) else []
        if index < MOST_PARTS:
            parts += [""] * (index + 1 - len(parts))
            parts[index] = (parts[index] if isinstance(parts[index], str) else "") + more
        self._members[name] = parts


class Turn:
    """A turn."""

    __slots__ = ("id", "status", "error", "items", "_places")

    def __init__(self, id: str, status: str = "inProgress", error: Any = None, items: list[Item] | None = None) -> None:
        self.id = id
        self.status = status
        self.error = error
        self.items = items or []
        self._places = {item.id: at for at, item in enumerate(self.items)}

    def _last(self, fits: Callable[[Item], bool]) -> Item | None:
        return next((item for item in islice(reversed(self.items), LOOK_BACK) if fits(item)), None)

    def _open(self, kind: str, teller: Teller) -> Item | None:
        return self._last(lambda item: not item.is_complete and item.kind == kind and item.teller == teller)

    def _named(self, id: str) -> Item | None:
        at = self._places.get(id)
        return None if at is None else self.items[at]

    def _add(self, kind: str, id: str, members: Members, is_complete: bool, teller: Teller) -> Item:
        name = id or f"{kind}-{len(self.items) + 1}"
        item = Item(name, {**members, "id": name}, is_complete, teller)
        self._places[name] = len(self.items)
        self.items.append(item)
        return item

    def tell(self, id: str, members: Members, teller: Teller, is_complete: bool, at_ms: int | None) -> None:
        self._tell(id, members, teller, is_complete)
        item = self._named(id)
        if item is not None and item.began_ms is None:
            item.began_ms = at_ms

    def _tell(self, id: str, members: Members, teller: Teller, is_complete: bool) -> None:
        kind = _text_of(members, "type")
        item = self._named(id) if id else self._open(kind, teller)
        if item is None:
            self._add(kind, id, members, is_complete, teller)
            return
        if teller < item.teller:
            return
        if teller > item.teller or teller == Teller.ITEMS:
            if is_complete or item.deltas is None:
                item.members = dict(members)
        else:
            item.members = {**item.members, **members, "id": item.members["id"]}
        item.teller = teller
        item.is_complete = item.is_complete or is_complete

    def grow(self, delta: Delta) -> None:
        kind = KIND_OF_PART[delta.part]
        item = self._named(delta.item) if delta.item else self._open(kind, delta.teller)
        if item is None and not delta.item:
            item = self._last(lambda item: not item.is_complete and item.teller == delta.teller)
        if item is None:
            item = self._add(kind, delta.item, {"type": kind}, False, delta.teller)
        if item.is_complete:
            return
        if item.deltas is None:
            item.deltas = delta.teller
        if item.deltas == delta.teller:
            item.append(delta.part, delta.index, delta.text)

    def forget(self, kind: str) -> None:
        """Drops the items of a kind that only the old queue has reported."""
        self.items = [item for item in self.items if item.teller != Teller.OLD_QUEUE or item.kind != kind]
        self._places = {item.id: at for at, item in enumerate(self.items)}

    def to_value(self) -> dict[str, Any]:
        items = [{"complete": item.is_complete, "item": item.members} for item in self.items]
        return {"id": self.id, "status": self.status, "error": self.error, "items": items}


class Thread:
    """A thread."""

    def __init__(self) -> None:
        self.members: Members = {}
        self.turns: list[Turn] = []
        self.plan: Members | None = None
        self.diff = ""
        self.usage: Any = None
        self.errors: list[str] = []
        self.questions: list[events.Asked] = []
        self._named: set[str] = set()
        self._places: dict[str, int] = {}

    @property
    def running_turn(self) -> Turn | None:
        return self.turns[-1] if self.turns and self.turns[-1].status == "inProgress" else None

    def open(self, value: Members, is_whole: bool) -> None:
        self.members.update({name: member for name, member in value.items() if name != "turns"})
        if is_whole:
            turns = value.get("turns")
            self.turns = [_stored_turn(turn) for turn in (turns if isinstance(turns, list) else [])]
            self._places = {turn.id: at for at, turn in enumerate(self.turns)}

    def start_turn(self, id: str) -> Turn:
        at = self._places.setdefault(id, len(self.turns))
        if at == len(self.turns):
            self.turns.append(Turn(id))
        return self.turns[at]

    def turn(self, id: str) -> Turn:
        """The turn of a name; the last one if it has none."""
        return self.turns[-1] if id == "" and self.turns else self.start_turn(id)

    def end_turn(self, id: str, status: str, error: Any) -> None:
        """The end that was reported first holds: a turn that was interrupted is reported as complete as well."""
        turn = self.turn(id)
        if turn.status == "inProgress" or (status == "failed" and turn.status == "completed"):
            turn.status = status
        if error is not None:
            turn.error = error

    def take_usage(self, usage: Any) -> None:
        # The queue reports fewer counts than v2, which reports the same again.
        def total(value: Any) -> Any:
            return _member(_member(value, "total"), "totalTokens")

        knows_more = _member(_member(self.usage, "total"), "cacheWriteInputTokens") is not None
        if not (knows_more and total(self.usage) == total(usage)):
            self.usage = usage

    def note_error(self, message: str) -> None:
        if len(self.errors) < MOST_NOTED and (not self.errors or self.errors[-1] != message):
            self.errors.append(message)

    def tell(self, turn: str, members: Members, teller: Teller, is_complete: bool, at_ms: int | None) -> None:
        kind = _text_of(members, "type")
        if teller == Teller.OLD_QUEUE:
            if kind in self._named:
                return
        elif kind in UNNAMED_KINDS and kind not in self._named:
            self._named.add(kind)
            self.turn(turn).forget(kind)
        self.turn(turn).tell(_text_of(members, "id"), members, teller, is_complete, at_ms)

    def grow(self, delta: Delta) -> None:
        if delta.teller == Teller.OLD_QUEUE and KIND_OF_PART[delta.part] in self._named:
            return
        self.turn(delta.turn).grow(delta)

    def resolve(self, id: RequestId) -> None:
        self.questions = [question for question in self.questions if question.id != id]

    def to_value(self) -> dict[str, Any]:
        return {
            "members": self.members,
            "turns": [turn.to_value() for turn in self.turns],
            "plan": self.plan,
            "diff": self.diff,
            "usage": self.usage,
            "errors": self.errors,
            "questions": [{"id": question.id, "method": question.method} for question in self.questions],
        }


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _stored_item(members: Members) -> Item:
    item = Item(_text_of(members, "id"), dict(members), members.get("status") != "inProgress", Teller.ITEMS)
    began = members.get("startedAtMs")
    item.began_ms = began if type(began) is int else None
    return item


def end_of(turn: Any) -> str:
    """The status of a stored turn. One that began and has no end was interrupted by the end of its server."""
    status = _text_of(turn, "status")
    has_begun, is_open = type(_member(turn, "startedAt")) is int, isinstance(turn, dict) and turn.get("completedAt", 0) is None
    return "interrupted" if status == "completed" and has_begun and is_open else status


def _stored_turn(turn: Any) -> Turn:
    told = _member(turn, "items")
    items = [_stored_item(members) for members in (told if isinstance(told, list) else []) if isinstance(members, dict)]
    return Turn(_text_of(turn, "id"), end_of(turn), _member(turn, "error"), items)


class State:
    """Everything that is known."""

    def __init__(self) -> None:
        self.threads: dict[str, Thread] = {}
        self.rate_limits: Any = None
        #: The methods that were not known, each once.
        self.unknown: list[str] = []
        self.notes = 0

    def thread(self, id: str) -> Thread:
        """A thread; a new one if it is not known."""
        found = self.threads.get(id)
        if found is None:
            found = self.threads[id] = Thread()
        return found

    def apply(self, event: Event) -> None:
        """Takes an event."""
        match event:
            case Delta():
                self.thread(event.thread).grow(event)
            case events.ItemStarted():
                self.thread(event.thread).tell(event.turn, event.item, event.teller, False, event.at_ms)
            case events.ItemCompleted():
                self.thread(event.thread).tell(event.turn, event.item, event.teller, True, event.at_ms)
            case events.ThreadKnown():
                self.thread(event.id).open(event.value, event.whole)
            case events.ThreadChanged():
                self.thread(event.thread).members[event.member] = event.value
            case events.TurnStarted():
                self.thread(event.thread).start_turn(event.turn)
            case events.TurnEnded():
                self.thread(event.thread).end_turn(event.turn, event.status, event.error)
            case events.Plan():
                self.thread(event.thread).plan = event.plan
            case events.Diff():
                self.thread(event.thread).diff = event.diff
            case events.Usage():
                self.thread(event.thread).take_usage(event.usage)
            case events.Asked():
                thread = self.thread(event.thread)
                thread.resolve(event.id)
                thread.questions = [*thread.questions[1 - MOST_QUESTIONS :], event]
            case events.Resolved():
                self.thread(event.thread).resolve(event.id)
            case _:
                self._apply_to_none(event)

    def _apply_to_none(self, event: Event) -> None:
        """Takes an event that changes no turn."""
        match event:
            case events.Error():
                self.thread(event.thread).note_error(event.message)
            case events.RateLimits():
                self.rate_limits = event.limits
            case events.Unknown():
                if len(self.unknown) < MOST_NOTED and event.method not in self.unknown:
                    self.unknown.append(event.method)
            case events.Note():
                self.notes += 1

    def to_value(self) -> dict[str, Any]:
        """The state as JSON, the same in every language."""
        return {
            "threads": {id: self.threads[id].to_value() for id in sorted(self.threads)},
            "rateLimits": self.rate_limits,
            "unknown": self.unknown,
            "notes": self.notes,
        }
