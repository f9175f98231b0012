"""Connects to a server that runs already, at an address that it listens on."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from urllib.parse import urlsplit

from .connection import Client, Options, connect
from .errors import StartError

#: The time limit to reach the server, in seconds.
DEADLINE = 10.0
#: The longest answer to a token.
ANSWER_BYTES = 4096


async def dial(address: str, options: Options | None = None, *, token: str | None = None) -> Client:
    """Connects to `unix:///PATH`, to `unix://`, which is the socket in `CODEX_HOME`, or to `tcp://IP:PORT` with its
    token."""
    try:
        reader, writer = await asyncio.wait_for(_open(address, token), DEADLINE)
    except (OSError, ValueError, asyncio.TimeoutError) as error:
        raise StartError(f"cannot connect to {address}: {str(error) or 'no answer'}") from error
    return await connect(reader, writer, options)


async def _open(address: str, token: str | None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await _socket(address)
    try:
        if token is not None:
            await _authenticate(reader, writer, token)
    except BaseException:
        writer.close()
        raise
    return reader, writer


async def _authenticate(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
    """Presents a token, which is the first line over TCP."""
    first = {"id": 0, "method": "authenticate", "params": {"token": token}}
    writer.write(f"{json.dumps(first)}\n".encode())
    await writer.drain()
    line = b""
    # Byte by byte: what comes after the line belongs to the connection.
    while not line.endswith(b"\n") and len(line) <= ANSWER_BYTES:
        byte = await reader.read(1)
        if not byte:
            raise ValueError("it has hung up")
        line += byte
    answer = json.loads(line)
    if not isinstance(answer, dict) or "result" not in answer:
        error = answer.get("error") if isinstance(answer, dict) else None
        raise ValueError(error.get("message", "refused") if isinstance(error, dict) else "it is no server")


async def _socket(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    url = urlsplit(address)
    if url.scheme == "unix":
        return await asyncio.open_unix_connection(url.path or _usual_socket())
    if url.scheme == "tcp" and url.hostname and url.port:
        return await asyncio.open_connection(url.hostname, url.port)
    raise ValueError("an address begins with unix:// or is tcp://IP:PORT")


def _usual_socket() -> str:
    home = os.environ.get("CODEX_HOME")
    return str((Path(home) if home else Path.home() / ".codex") / "run" / "app-server.sock")
