"""Connects to a server that runs already, at an address that it listens on."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from urllib.parse import urlsplit

from .connection import Client, Options, connect
from .errors import StartError

#: The time limit to reach the server, in seconds.
DEADLINE = 10.0


async def dial(address: str, options: Options | None = None, *, token: str | None = None) -> Client:
    """Connects to `unix:///PATH`, to `unix://`, which is the socket in `CODEX_HOME`, or to `tcp://IP:PORT` with its
    token."""
    try:
        reader, writer = await asyncio.wait_for(_open(address), DEADLINE)
    except (OSError, ValueError, asyncio.TimeoutError) as error:
        raise StartError(f"cannot connect to {address}: {error or 'no answer'}") from error
    if token is not None:
        writer.write(f"{token}\n".encode())
    return await connect(reader, writer, options)


async def _open(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    url = urlsplit(address)
    if url.scheme == "unix":
        return await asyncio.open_unix_connection(url.path or _usual_socket())
    if url.scheme == "tcp" and url.hostname and url.port:
        return await asyncio.open_connection(url.hostname, url.port)
    raise ValueError("an address begins with unix:// or is tcp://IP:PORT")


def _usual_socket() -> str:
    home = os.environ.get("CODEX_HOME")
    return str((Path(home) if home else Path.home() / ".codex") / "run" / "app-server.sock")
