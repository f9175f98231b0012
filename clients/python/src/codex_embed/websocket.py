"""WebSocket (RFC 6455) as a client, over asyncio: one message per text frame."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from .proof import Exchange, address_of

KEY_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#: The longest payload of a frame that is no part of a message.
CONTROL_BYTES = 125
#: The longest answer to the request for a WebSocket, and the longest reason of a refusal that is read.
ANSWER_BYTES = 16 * 1024
REASON_BYTES = 4096
READ_BYTES = 64 * 1024
#: The most bytes of pongs that wait for a server that does not read.
MOST_WAITING_BYTES = 64 * 1024


class Opcode(IntEnum):
    CONTINUATION = 0
    TEXT = 1
    CLOSE = 8
    PING = 9
    PONG = 10


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a message, so that a long one is not kept here."""

    data: bytes
    is_end: bool


@dataclass(frozen=True, slots=True)
class Control:
    """A frame that is no part of a message."""

    opcode: Opcode
    data: bytes


@dataclass(slots=True)
class _Frame:
    opcode: Opcode
    is_last: bool
    left: int
    payload: bytearray = field(default_factory=bytearray)


class FrameReader:
    """Reads the frames of a server. Bytes that break the rules are a `ValueError`."""

    def __init__(self) -> None:
        self._head = b""
        self._frame: _Frame | None = None
        self._is_in_message = False

    def push(self, data: bytes) -> Iterator[Piece | Control]:
        """Takes bytes of the server."""
        rest = memoryview(self._head + data if self._head else data)
        self._head = b""
        while True:
            if self._frame is None:
                size, self._frame = self._header(rest)
                if self._frame is None:
                    self._head = bytes(rest)
                    return
                rest = rest[size:]
            frame, piece = self._frame, bytes(rest[: self._frame.left])
            rest = rest[len(piece) :]
            frame.left -= len(piece)
            if frame.opcode > Opcode.TEXT:
                frame.payload += piece
            else:
                yield Piece(piece, frame.left == 0 and frame.is_last)
            if frame.left > 0:
                return
            self._frame = None
            if frame.opcode > Opcode.TEXT:
                yield Control(frame.opcode, bytes(frame.payload))

    def _header(self, data: memoryview) -> tuple[int, _Frame | None]:
        """The next frame without its payload, and the size of its header; None if that is not complete."""
        if len(data) < 2:
            return 0, None
        if data[0] & 0x70:
            raise ValueError("a frame uses an extension")
        if data[1] >= 0x80:
            raise ValueError("a frame of the server is masked")
        size = {126: 4, 127: 10}.get(data[1], 2)
        if len(data) < size:
            return 0, None
        length = data[1] if size == 2 else int.from_bytes(data[2:size], "big")
        return size, self._checked(data[0] & 0x0F, data[0] >= 0x80, length)

    def _checked(self, code: int, is_last: bool, length: int) -> _Frame:
        if length >= 1 << 63:
            raise ValueError("a frame is too long")
        try:
            opcode = Opcode(code)
        except ValueError:
            raise ValueError("a frame is neither text nor control") from None
        if opcode > Opcode.TEXT:
            if not is_last or length > CONTROL_BYTES:
                raise ValueError("a control frame is too long or in parts")
        else:
            if self._is_in_message != (opcode is Opcode.CONTINUATION):
                raise ValueError("the parts of messages are mixed")
            self._is_in_message = not is_last
        return _Frame(opcode, is_last, length)


def frame(opcode: Opcode, payload: bytes) -> bytes:
    """A whole frame of a client, whose payload is masked."""
    length = len(payload)
    if length < 126:
        head = bytes((0x80 | opcode, 0x80 | length))
    elif length < 65_536:
        head = bytes((0x80 | opcode, 0x80 | 126)) + length.to_bytes(2, "big")
    else:
        head = bytes((0x80 | opcode, 0x80 | 127)) + length.to_bytes(8, "big")
    mask = os.urandom(4)
    # One operation on long numbers, because a loop over the bytes takes seconds for a large message.
    whole = int.from_bytes((mask * (length // 4 + 1))[:length], "big")
    return head + mask + (int.from_bytes(payload, "big") ^ whole).to_bytes(length, "big")


class WebSocket:
    """The two streams of a connection, as lines."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._frames = FrameReader()
        self._lines = bytearray()
        self._has_ended = False

    async def read(self, n: int, /) -> bytes:
        """Some bytes of the lines of the server; none at its end."""
        while not self._lines and not self._has_ended:
            data = await self._reader.read(READ_BYTES)
            try:
                self._has_ended = not data
                for told in self._frames.push(data):
                    self._take(told)
            except ValueError:
                # It breaks the rules: it is no server.
                self._has_ended = True
        taken = bytes(self._lines[:n])
        del self._lines[:n]
        return taken

    def _take(self, told: Piece | Control) -> None:
        match told:
            case Piece(data, is_end):
                self._lines += data + b"\n" if is_end else data
            case Control(Opcode.PING, data):
                if self._writer.transport.get_write_buffer_size() < MOST_WAITING_BYTES:
                    self._writer.write(frame(Opcode.PONG, data))
            case Control(Opcode.CLOSE, _):
                self._has_ended = True

    def write(self, data: bytes, /) -> None:
        """Writes one line."""
        self._writer.write(frame(Opcode.TEXT, data.rstrip(b"\n")))

    async def drain(self) -> None:
        await self._writer.drain()

    def close(self) -> None:
        """Says good-bye, and ends the connection."""
        if not self._writer.is_closing():
            self._writer.write(frame(Opcode.CLOSE, (1000).to_bytes(2, "big")))
            self._writer.close()


async def upgrade(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, token: str, is_sent: bool = False
) -> WebSocket:
    """Asks a server to speak WebSocket. A refusal is a `ValueError`."""
    if not (token.isascii() and token.isprintable()):
        raise ValueError("the token fits into no header")
    authorization = f"Bearer {token}" if is_sent else await _proof(reader, writer, host, token)
    key = base64.b64encode(os.urandom(16)).decode()
    headers = {
        "Host": host,
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": key,
        "Sec-WebSocket-Version": "13",
        "Authorization": authorization,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"GET / HTTP/1.1\r\n{lines}\r\n".encode())
    await writer.drain()
    status, answer = await _head(reader)
    if " 101" not in status[:13]:
        raise ValueError(f"{status.partition(' ')[2]} {await _reason(reader, answer)}".strip())
    expected = base64.b64encode(hashlib.sha1((key + KEY_SUFFIX).encode()).digest()).decode()
    if answer.get("sec-websocket-accept") != expected:
        raise ValueError("it is no server")
    return WebSocket(reader, writer)


async def _proof(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, token: str) -> str:
    """The header that proves that the client knows the token, after a first request that exchanges nonces."""
    exchange = Exchange(token, address_of(writer))
    writer.write(f"GET / HTTP/1.1\r\nHost: {host}\r\nAuthorization: {exchange.hello}\r\n\r\n".encode())
    await writer.drain()
    _, answer = await _head(reader)
    await _reason(reader, answer)
    return exchange.answer(answer.get("www-authenticate"))


async def _head(reader: asyncio.StreamReader) -> tuple[str, dict[str, str]]:
    """The first line of an answer, and its headers."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        raise ValueError("it is no server") from None
    if len(head) > ANSWER_BYTES or not head.startswith(b"HTTP/1.1 "):
        raise ValueError("it is no server")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = (line.partition(":") for line in lines)
    return status, {name.strip().lower(): value.strip() for name, _, value in headers}


async def _reason(reader: asyncio.StreamReader, headers: dict[str, str]) -> str:
    """The body of a refusal, as far as it is short."""
    length = headers.get("content-length", "0")
    count = min(int(length), REASON_BYTES) if length.isdecimal() else 0
    try:
        return (await reader.readexactly(count)).decode("utf-8", "replace").strip()
    except asyncio.IncompleteReadError as error:
        return error.partial.decode("utf-8", "replace").strip()
