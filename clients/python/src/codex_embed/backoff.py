"""The waits between the starts of a server that ends by itself."""

from __future__ import annotations

WAITS = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
#: The number of restarts in a row.
MOST_RESTARTS = 10
#: A server that ran this many seconds counts as healthy, and the waits restart from the first.
HEALTHY_SECONDS = 60.0


class Backoff:
    """Counts restarts."""

    def __init__(self) -> None:
        self._restarts = 0

    def next(self, ran: float, chance: float) -> tuple[int, float] | None:
        """The number of the next restart and the wait before it, in seconds, for a server that ran for some time; None if
        it was restarted often enough. Chance, from 0 to 1, shortens the wait by up to a fifth."""
        if ran >= HEALTHY_SECONDS:
            self._restarts = 0
        if self._restarts == MOST_RESTARTS:
            return None
        wait = WAITS[min(self._restarts, len(WAITS) - 1)]
        self._restarts += 1
        return self._restarts, wait * (1 - min(max(chance, 0.0), 1.0) / 5)
