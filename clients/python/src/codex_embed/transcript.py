"""Bytes of a server as messages, however they are cut. A line that is no message becomes a note."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeAlias

from .events import Event, Note, RequestId
from .router import notification, request, response
from .shapes import is_id, is_integer

#: The longest line that is kept.
MAX_LINE_BYTES = 32 * 1024 * 1024


@dataclass(slots=True)
class Told:
    """A notification, with its number if the server numbers its events."""

    event: Event
    seq: int | None = None


@dataclass(slots=True)
class Question:
    """A request of the server."""

    id: RequestId
    method: str
    params: Any


@dataclass(slots=True)
class Response:
    """An answer to a request; `error` is None if it has succeeded."""

    id: RequestId
    result: Any
    error: dict[str, Any] | None


@dataclass(slots=True)
class Noise:
    """No message; the bytes that it took."""

    bytes: int
    why: str


Message: TypeAlias = "Told | Question | Response | Noise"


class Transcript:
    """Cuts bytes into lines and reads them."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._skipped: int | None = None

    def push(self, data: bytes) -> list[Message]:
        """Takes more bytes, and returns the messages that are complete with them."""
        messages: list[Message] = []
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            if not self._rest and self._skipped is None and end - start <= MAX_LINE_BYTES:
                self._add(messages, read_line(data[start:end]))
            else:
                self._keep(data[start:end])
                self._take(messages)
            start = end + 1
        self._keep(data[start:] if start else data)
        return messages

    def finish(self) -> list[Message]:
        """Takes the end of the input: a last line counts without its end."""
        messages: list[Message] = []
        self._take(messages)
        return messages

    @property
    def kept(self) -> int:
        """The bytes of the line that is not complete yet."""
        return len(self._rest)

    def _keep(self, data: bytes) -> None:
        if self._skipped is not None:
            self._skipped += len(data)
        elif len(self._rest) + len(data) > MAX_LINE_BYTES:
            self._skipped = len(self._rest) + len(data)
            self._rest = bytearray()
        else:
            self._rest += data

    def _take(self, messages: list[Message]) -> None:
        if self._skipped is not None:
            messages.append(Noise(self._skipped, "a line is too long"))
        elif self._rest:
            self._add(messages, read_line(bytes(self._rest)))
        self._rest, self._skipped = bytearray(), None

    @staticmethod
    def _add(messages: list[Message], message: Message | None) -> None:
        if message is not None:
            messages.append(message)


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _parsed(line: bytes) -> Any:
    value = json.loads(line.decode("utf-8"), parse_constant=_refuse)
    if b"\\ud" in line or b"\\uD" in line:
        # Half a character cannot be written anywhere; a program that prints it would fail.
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def read_line(data: bytes) -> Message | None:
    """Reads a line; an empty one is nothing."""
    line = data.strip(b" \t\n\x0c\r")
    if not line:
        return None
    try:
        return _message(_parsed(line), len(line))
    except (ValueError, RecursionError):
        return Noise(len(line), "a line is not a message")


def _message(value: Any, size: int) -> Message:
    if not isinstance(value, dict):
        return Noise(size, "a line is not a message")
    id, method, error = value.get("id"), value.get("method"), value.get("error")
    if not (method is None or isinstance(method, str)) or not (error is None or isinstance(error, dict)):
        return Noise(size, "a line is not a message")
    if id is not None and not is_id(id):
        return Noise(size, "an id is neither a number nor a text")
    if method is not None:
        if id is not None:
            return Question(id, method, value.get("params"))
        seq = value.get("seq")
        return Told(notification(method, value.get("params")), seq if is_integer(seq) else None)
    if id is None:
        return Noise(size, "a message has neither an id nor a method")
    return Response(id, value.get("result"), error)


def event_of(message: Message) -> Event | None:
    """The event that a message is for a state."""
    match message:
        case Told(event=event):
            return event
        case Question(id=id, method=method, params=params):
            return request(id, method, params)
        case Response(result=result, error=error):
            return response(result) if error is None else None
        case Noise(bytes=size, why=why):
            return Note(f"{why} ({size} bytes)")
