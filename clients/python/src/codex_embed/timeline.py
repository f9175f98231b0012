"""The items of a thread in the order in which they came, filtered and searched."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from .state import Item, Thread, Turn

#: The members of items that hold text for people.
MEMBERS = (
    "text",
    "content",
    "summary",
    "command",
    "aggregatedOutput",
    "changes",
    "server",
    "tool",
    "arguments",
    "result",
    "error",
    "query",
    "path",
    "review",
    "prompt",
)
#: The deepest value that is searched.
MOST_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Filter:
    """The items that are wanted. An empty filter wants all."""

    #: Their kinds, such as `commandExecution`; empty for all.
    kinds: Collection[str] = ()
    #: The only turn.
    turn: str | None = None
    #: Their states, such as `failed`; empty for all.
    statuses: Collection[str] = ()
    #: The time from which on they began, in milliseconds of Unix time.
    since_ms: int | None = None
    #: The time before which they began.
    until_ms: int | None = None
    #: A text that they contain, in any case.
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A place in a text of an item: `text[start:end]`."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Entry:
    """An item with its place."""

    turn: Turn
    item: Item
    #: The time of its beginning, if the server reported it.
    at_ms: int | None
    status: str
    #: The first place with the text of the filter.
    found: Found | None = None


def timeline(thread: Thread, filter: Filter = Filter()) -> Iterator[Entry]:
    """The items that a filter wants, oldest first."""
    needle = _folded(filter.text)[0] if filter.text else ""
    for turn in thread.turns:
        if filter.turn is not None and turn.id != filter.turn:
            continue
        for item in turn.items:
            if not _wants(filter, item):
                continue
            found = None
            if needle:
                places = (_find(text, needle) for text in texts(item))
                found = next((place for place in places if place is not None), None)
                if found is None:
                    continue
            yield Entry(turn, item, item.began_ms, status(item), found)


def status(item: Item) -> str:
    """The status of an item: as the server reports it, or whether it is complete."""
    told = item.members.get("status")
    return told if isinstance(told, str) else "completed" if item.is_complete else "inProgress"


def texts(item: Item) -> list[str]:
    """The texts of an item for people."""
    found: list[str] = []
    for name in MEMBERS:
        _collect(item.members.get(name), found, 0)
    return found


def _wants(filter: Filter, item: Item) -> bool:
    began = item.began_ms
    return (
        (not filter.kinds or item.kind in filter.kinds)
        and (not filter.statuses or status(item) in filter.statuses)
        and (filter.since_ms is None or (began is not None and began >= filter.since_ms))
        and (filter.until_ms is None or (began is not None and began < filter.until_ms))
    )


def _collect(value: Any, found: list[str], depth: int) -> None:
    """The texts in a value. The words that only name its form are left out."""
    if isinstance(value, str):
        found.append(value)
    elif depth < MOST_DEPTH and isinstance(value, list):
        for part in value:
            _collect(part, found, depth + 1)
    elif depth < MOST_DEPTH and isinstance(value, dict):
        for name, member in value.items():
            if name not in ("type", "kind"):
                _collect(member, found, depth + 1)


def _folded(text: str) -> tuple[str, list[int] | None]:
    """A text in lower case, and the place of each of its letters in the original, if they differ."""
    if text.isascii():
        return text.lower(), None
    letters = [letter.lower() for letter in text]
    if all(len(letter) == 1 for letter in letters):
        return "".join(letters), None
    return "".join(letters), [at for at, letter in enumerate(letters) for _ in letter]


def _find(text: str, needle: str) -> Found | None:
    folded, places = _folded(text)
    at = folded.find(needle)
    if at < 0:
        return None
    end = at + len(needle)
    return Found(text, at, end) if places is None else Found(text, places[at], places[end - 1] + 1)
