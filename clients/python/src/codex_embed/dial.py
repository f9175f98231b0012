"""Connects to a server that runs already, at an address that it listens on."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
import sys

from . import websocket
from .address import Address, parse
from .connection import Client, Input, Options, Output, connect
from .errors import StartError
from .proof import Exchange, address_of

#: The time limit to reach the server, in seconds.
DEADLINE = 10.0
#: The longest answer to a token.
ANSWER_BYTES = 4096


async def dial(
    address: str, options: Options | None = None, *, token: str | None = None, send_token: bool = False
) -> Client:
    """Connects to `unix:///PATH`, to `unix://`, which is the socket in `CODEX_HOME`, or with a token to `ws://IP:PORT` or
    `tcp://IP:PORT`.

    Both sides prove that they know the token. With `send_token` it is sent instead, as to a server behind a forwarded
    port."""
    place = parse(address)
    if place.scheme != "unix" and token is None:
        raise StartError(f"{address} needs a token", is_final=True)
    try:
        reader, writer = await asyncio.wait_for(_open(place, token or "", send_token), DEADLINE)
    except (OSError, ValueError, asyncio.TimeoutError) as error:
        raise StartError(f"cannot connect to {address}: {str(error) or 'no answer'}") from error
    return await connect(reader, writer, options)


async def _open(place: Address, token: str, is_sent: bool) -> tuple[Input, Output]:
    if place.scheme == "unix":
        reader, writer = await asyncio.open_unix_connection(place.path)
    else:
        reader, writer = await asyncio.open_connection(place.host, place.port)
    try:
        if place.scheme == "unix":
            _check_peer(writer.get_extra_info("socket"))
        elif place.scheme == "tcp":
            await _authenticate(reader, writer, token, is_sent)
        else:
            host = f"[{place.host}]" if ":" in place.host else place.host
            stream = await websocket.upgrade(reader, writer, f"{host}:{place.port}", token, is_sent)
            return stream, stream
    except BaseException:
        writer.close()
        raise
    return reader, writer


def _check_peer(stream: socket.socket) -> None:
    """Refuses a server of another user, where the system tells whose it is."""
    if sys.platform == "linux":
        size = struct.calcsize("3i")
        _, user, _ = struct.unpack("3i", stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        if user not in (0, os.geteuid()):
            raise ValueError("it belongs to another user")


async def _authenticate(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str, is_sent: bool
) -> None:
    """Authenticates with the first lines over TCP."""
    if is_sent:
        await _exchange(reader, writer, {"token": token})
        return
    exchange = Exchange(token, address_of(writer))
    answer = await _exchange(reader, writer, {"nonce": exchange.nonce, "address": exchange.address})
    await _exchange(reader, writer, {"proof": exchange.prove(answer.get("nonce"), answer.get("proof"))})


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, params: dict[str, str]
) -> dict[str, object]:
    """Sends a line, and returns the result of its answer."""
    line = json.dumps({"id": 0, "method": "authenticate", "params": params})
    writer.write(f"{line}\n".encode())
    await writer.drain()
    said = b""
    # Byte by byte: what comes after the line belongs to the connection.
    while not said.endswith(b"\n") and len(said) <= ANSWER_BYTES:
        byte = await reader.read(1)
        if not byte:
            raise ValueError("it has hung up")
        said += byte
    try:
        answer = json.loads(said)
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or not isinstance(answer.get("result"), dict):
        error = answer.get("error") if isinstance(answer, dict) else None
        raise ValueError(error.get("message", "refused") if isinstance(error, dict) else "it is no server")
    return answer["result"]
