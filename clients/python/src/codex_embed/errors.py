"""The ways in which a call, a connection or a turn fails."""

from __future__ import annotations

from typing import Any


class CodexError(Exception):
    """Any failure that this library reports."""


class CallError(CodexError):
    """A call has no result."""

    def __init__(self, method: str, message: str) -> None:
        super().__init__(f"{method}: {message}")
        self.method = method


class RefusedError(CallError):
    """The server has refused a call."""

    def __init__(self, method: str, code: int, message: str, data: Any = None) -> None:
        super().__init__(method, f"{message} (code {code})")
        self.code = code
        self.message = message
        self.data = data


class LateError(CallError):
    """A call was not answered in time."""

    def __init__(self, method: str, deadline: float) -> None:
        super().__init__(method, f"no answer within {deadline:g} s")


class ClosedError(CallError):
    """The connection is closed."""

    def __init__(self, method: str) -> None:
        super().__init__(method, "the connection is closed")


class StartError(CodexError):
    """The server cannot be started or reached. It is final if another attempt would fail in the same way."""

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        super().__init__(message)
        self.is_final = is_final


class TurnError(CodexError):
    """A turn has failed. `info` is the error that the server reported with its end, if any."""

    def __init__(self, message: str, info: Any = None) -> None:
        super().__init__(message)
        self.info = info
