"""Ids, texts and durations, in all the shapes in which servers have sent them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any, TypeGuard

THREAD = ("threadId", "thread_id", "conversationId", "conversation_id")
SESSION = ("sessionId", "session_id")
TURN = ("turnId", "turn_id")


def get(value: Any, name: str) -> Any:
    """A member of an object; None for anything else."""
    return value.get(name) if isinstance(value, dict) else None


def has(value: Any, name: str) -> bool:
    """Whether a value is an object with this member, even if it is null."""
    return isinstance(value, dict) and name in value


def text(value: Any, names: Iterable[str]) -> str | None:
    """The first member that is a text and not empty."""
    if isinstance(value, dict):
        for name in names:
            member = value.get(name)
            if isinstance(member, str) and member:
                return member
    return None


def is_integer(value: Any) -> TypeGuard[int]:
    """Whether a value is a whole number; Python counts truth values among them."""
    return type(value) is int


def is_number(value: Any) -> TypeGuard[float]:
    return type(value) is int or type(value) is float


def is_id(value: Any) -> TypeGuard[int | str]:
    """Whether a value is an id of JSON-RPC."""
    return isinstance(value, str) or (is_integer(value) and -(2**63) <= value < 2**63)


def thread_id(params: Any) -> str:
    """The thread that parameters are about; empty if they name none."""
    message = get(params, "msg")
    return (
        text(params, THREAD)
        or text(get(params, "thread"), ("id",))
        or text(message, THREAD)
        or text(params, SESSION)
        or text(message, SESSION)
        or ""
    )


def turn_id(params: Any) -> str:
    """The turn that parameters are about; empty if they name none."""
    message = get(params, "msg")
    return (
        text(params, TURN)
        or text(get(params, "turn"), ("id",))
        or text(message, TURN)
        or (text(params, ("id",)) if has(params, "msg") else None)
        or ""
    )


def any_text(value: Any) -> str | None:
    """The text in a value: itself, a member of it, or the joined texts of its parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        texts = [part for part in map(any_text, value) if part is not None]
        return "".join(texts) if texts else None
    if not isinstance(value, dict):
        return None
    for name in ("text", "textDelta", "delta", "message"):
        if isinstance(value.get(name), str):
            return str(value[name])
    content = any_text(value.get("content"))
    return content if content is not None else any_text(value.get("item"))


MILLISECONDS = ("millis", "milliseconds", "durationMs", "duration_ms", "ms")
NANOSECONDS = {
    "hours": 3.6e12,
    "minutes": 6e10,
    "seconds": 1e9,
    "secs": 1e9,
    "microseconds": 1e3,
    "micros": 1e3,
    "nanos": 1.0,
    "nanoseconds": 1.0,
}
UNITS: dict[str, float] = {
    **dict.fromkeys(("", "ms", "msec", "millis"), 1.0),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1e3),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 6e4),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3.6e6),
    **dict.fromkeys(("us", "µs"), 1e-3),
    "ns": 1e-6,
}
# Each part of a number is matched in one way only: otherwise a long one that does not fit takes quadratic time.
AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?![0-9.])\s*([^\W\d_]*)\s*")


def duration_ms(value: Any) -> int | None:
    """A duration in whole milliseconds."""
    if is_number(value):
        return whole(value)
    if isinstance(value, str):
        return duration_text(value)
    if isinstance(value, list):
        return first_duration(value)
    return duration_members(value) if isinstance(value, dict) else None


def whole(value: float) -> int | None:
    return math.floor(value) if math.isfinite(value) else None


def first_duration(values: Iterable[Any]) -> int | None:
    return next((found for found in map(duration_ms, values) if found is not None), None)


def duration_members(value: dict[str, Any]) -> int | None:
    number = next((value[name] for name in MILLISECONDS if is_number(value.get(name))), None)
    if number is not None:
        return whole(number)
    parts = [value[name] * nanos for name, nanos in NANOSECONDS.items() if is_number(value.get(name))]
    if parts:
        return whole(sum(parts) / 1e6)
    written = first_duration(value.get(name) for name in ("approximate", "pretty", "human"))
    return written if written is not None else first_duration(value.values())


def duration_text(value: str) -> int | None:
    """Reads `1.5s`, `250ms`, `~30s`, `2m 3s`; a number alone is milliseconds."""
    rest = value.strip().lstrip("~≈").strip()
    total, at = 0.0, 0
    while at < len(rest):
        match = AMOUNT.match(rest, at)
        unit = UNITS.get(match[2]) if match else None
        if match is None or unit is None:
            return None
        total += float(match[1]) * unit
        at = match.end()
    return whole(total) if rest else None
