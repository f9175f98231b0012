"""Tokens, their cost, and the limits of an account with the times at which they are restored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .shapes import get, is_integer, is_number


def _member(value: Any, *names: str) -> Any:
    """The first of some members."""
    return next((get(value, name) for name in names if get(value, name) is not None), None)


def _count(value: Any, *names: str) -> int | None:
    found = _member(value, *names)
    return int(found) if is_integer(found) and found >= 0 else None


def _number(value: Any, *names: str) -> float | None:
    found = _member(value, *names)
    return float(found) if is_number(found) else None


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices for a million tokens, for programs whose server knows none."""

    input: float
    cached: float
    cache_write: float
    output: float


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens by kind. Cached ones are part of the input, reasoning is part of the output."""

    total: int = 0
    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0

    @classmethod
    def read(cls, counts: Any) -> Tokens:
        return cls(
            _count(counts, "totalTokens", "total_tokens") or 0,
            _count(counts, "inputTokens", "input_tokens") or 0,
            _count(counts, "cachedInputTokens", "cached_input_tokens") or 0,
            _count(counts, "cacheWriteInputTokens", "cache_write_input_tokens") or 0,
            _count(counts, "outputTokens", "output_tokens") or 0,
            _count(counts, "reasoningOutputTokens", "reasoning_output_tokens") or 0,
        )

    def cost(self, prices: Prices) -> float:
        """The cost of these tokens."""
        fresh = max(self.input - self.cached - self.cache_write, 0)
        parts = (
            fresh * prices.input,
            self.cached * prices.cached,
            self.cache_write * prices.cache_write,
            self.output * prices.output,
        )
        return sum(parts) / 1_000_000


@dataclass(frozen=True, slots=True)
class ThreadUsage:
    """The tokens of a thread."""

    #: All answers added up, and the newest one alone.
    total: Tokens
    last: Tokens
    #: The size of the model's window.
    window: int | None
    #: The cost of the latest turn and of the thread, if the server knows the prices.
    turn_cost: float | None
    thread_cost: float | None

    @classmethod
    def read(cls, usage: Any) -> ThreadUsage | None:
        """Reads the usage of a thread's state; None before the first answer."""
        if not isinstance(usage, dict):
            return None
        return cls(
            Tokens.read(usage.get("total")),
            Tokens.read(usage.get("last")),
            _count(usage, "modelContextWindow", "model_context_window"),
            _number(usage, "turnCost", "turn_cost"),
            _number(usage, "threadCost", "thread_cost"),
        )

    @property
    def window_left(self) -> float | None:
        """The part of the model's window that is free, from 0 to 1."""
        return min(max(1 - self.last.total / self.window, 0.0), 1.0) if self.window else None


@dataclass(frozen=True, slots=True)
class Window:
    """A window of time with a limit."""

    used_percent: float
    #: Its length in seconds.
    length: int | None
    #: The time of the reset, in seconds of Unix time.
    resets_at: int | None

    @classmethod
    def read(cls, window: Any, now: int) -> Window | None:
        used = _number(window, "usedPercent", "used_percent")
        if used is None:
            return None
        minutes = _count(window, "windowDurationMins", "window_minutes")
        at = _count(window, "resetsAt", "resets_at")
        # The first releases reported the seconds that were left.
        left = _count(window, "resetsInSeconds", "resets_in_seconds")
        if at is None and left is not None:
            at = now + left
        return cls(used, None if minutes is None else minutes * 60, at)

    def resets_in(self, now: int) -> int | None:
        """The seconds until the reset."""
        return None if self.resets_at is None else max(self.resets_at - now, 0)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an account: the short window, the long one, the plan, and the remaining credits."""

    primary: Window | None = None
    secondary: Window | None = None
    plan: str | None = None
    credits: str | None = None

    @classmethod
    def read(cls, limits: Any, now: int) -> Limits:
        """Reads limits that arrived at this second of Unix time, in the shape of any release."""
        plan, balance = _member(limits, "planType", "plan_type"), get(get(limits, "credits"), "balance")
        return cls(
            Window.read(get(limits, "primary"), now),
            Window.read(get(limits, "secondary"), now),
            plan if isinstance(plan, str) else None,
            balance if isinstance(balance, str) else None,
        )

    def wait(self, now: int) -> int | None:
        """The seconds until all exhausted windows are restored; None if none is exhausted."""
        windows = [window for window in (self.primary, self.secondary) if window and window.used_percent >= 100]
        waits = [wait for wait in (window.resets_in(now) for window in windows) if wait is not None]
        return max(waits, default=None)
