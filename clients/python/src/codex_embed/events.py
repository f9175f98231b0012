"""Everything that a server reports, as one kind of event, in whichever dialect it was sent."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal, TypeAlias

#: The id of a JSON-RPC request.
RequestId: TypeAlias = "int | str"
#: Members of an item in the form of v2: `type`, `id`, and those of its kind.
Members: TypeAlias = "dict[str, Any]"
#: The member of an item that grows.
Part: TypeAlias = 'Literal["message", "output", "summary", "reasoning", "plan"]'

#: The kind of the items that have such a part.
KIND_OF_PART: dict[str, str] = {
    "message": "agentMessage",
    "output": "commandExecution",
    "summary": "reasoning",
    "reasoning": "reasoning",
    "plan": "plan",
}


class Teller(IntEnum):
    """The dialects that report items, from the least to the most detailed. A server may use several at once; an item is
    taken from the most detailed one, and its deltas from the first that has any."""

    OLD_QUEUE = 0
    QUEUE = 1
    CREATED = 2
    ITEMS = 3


@dataclass(slots=True)
class ThreadKnown:
    """A thread, with everything that is known about it; `whole` if its turns replace the known ones."""

    id: str
    value: Members
    whole: bool


@dataclass(slots=True)
class ThreadChanged:
    """A member of a thread has changed: `status`, `name`, `archived`, `deleted`, `closed` or `goal`."""

    thread: str
    member: str
    value: Any


@dataclass(slots=True)
class TurnStarted:
    thread: str
    turn: str


@dataclass(slots=True)
class TurnEnded:
    """A turn is over: `completed`, `interrupted` or `failed`."""

    thread: str
    turn: str
    status: str
    error: Any


@dataclass(slots=True)
class ItemStarted:
    """An item has started, or more of it is known; and when, in milliseconds of Unix time, if the server reports it."""

    thread: str
    turn: str
    item: Members
    teller: Teller
    at_ms: int | None = None


@dataclass(slots=True)
class ItemCompleted:
    thread: str
    turn: str
    item: Members
    teller: Teller
    at_ms: int | None = None


@dataclass(slots=True)
class Delta:
    """More of an item. `item` is empty if the server did not name it, and it is the open one of its kind."""

    thread: str
    turn: str
    item: str
    part: Part
    index: int
    text: str
    teller: Teller


@dataclass(slots=True)
class Plan:
    """The plan of a turn: `explanation` and `steps`."""

    thread: str
    turn: str
    plan: Members


@dataclass(slots=True)
class Diff:
    """All changes of a turn so far."""

    thread: str
    turn: str
    diff: str


@dataclass(slots=True)
class Usage:
    thread: str
    usage: Any


@dataclass(slots=True)
class RateLimits:
    limits: Any


@dataclass(slots=True)
class Error:
    """An error in a turn, which the server may try again."""

    thread: str
    turn: str
    message: str
    will_retry: bool


@dataclass(slots=True)
class Warning:
    """A warning for the user."""

    thread: str
    message: str


@dataclass(slots=True)
class Asked:
    """The server asks a question."""

    thread: str
    id: RequestId
    method: str
    params: Any


@dataclass(slots=True)
class Resolved:
    """A question needs no answer any more."""

    thread: str
    id: RequestId


@dataclass(slots=True)
class Other:
    """A message of a known method that changes nothing of a thread."""

    method: str
    params: Any


@dataclass(slots=True)
class Unknown:
    """A message of a method that this library does not know."""

    method: str
    params: Any


@dataclass(slots=True)
class Note:
    """A line that is no message, a handler that has failed, or a reader that was too slow for all deltas."""

    text: str


Event: TypeAlias = (
    "ThreadKnown | ThreadChanged | TurnStarted | TurnEnded | ItemStarted | ItemCompleted | Delta | Plan | Diff | Usage"
    " | RateLimits | Error | Warning | Asked | Resolved | Other | Unknown | Note"
)
