"""The address of a server, as a URL."""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass
from pathlib import Path

from .errors import StartError

_HOST = re.compile(r"(?:\[(?P<six>.*)\]|(?P<four>[^:]*)):(?P<port>[0-9]{1,5})/?")


@dataclass(frozen=True, slots=True)
class Address:
    """A Unix socket with its path, or an IP address and a port. The scheme is `unix`, `ws` or `tcp`."""

    scheme: str
    path: str = ""
    host: str = ""
    port: int = 0


def parse(text: str) -> Address:
    """Reads `unix:///PATH`, `unix://`, which is the socket in `CODEX_HOME`, or `ws://IP:PORT` or `tcp://IP:PORT`."""
    scheme, _, rest = text.partition("://")
    if scheme == "unix" and not rest:
        return Address(scheme, _usual_socket())
    if scheme == "unix" and rest.startswith("/"):
        return Address(scheme, rest)
    if scheme == "unix":
        hint = "an absolute one has three slashes, as in unix:///run/codex.sock"
        raise StartError(f"the path in {text} is not absolute; {hint}", is_final=True)
    if scheme in ("ws", "tcp"):
        return _host(text, scheme, rest)
    if scheme == "grpc":
        why = "gRPC needs HTTP/2, which the standard library of Python does not have"
        raise StartError(f"cannot connect to {text}: {why}; use ws://, tcp:// or unix://", is_final=True)
    why = "is not an address to connect to; use unix://PATH, ws://IP:PORT or tcp://IP:PORT"
    raise StartError(f"{text} {why}", is_final=True)


def _host(text: str, scheme: str, rest: str) -> Address:
    """An IP address and a port. The one accepted name means this machine, so that no resolver decides who listens."""
    found = _HOST.fullmatch(rest)
    try:
        if found is None or int(found["port"]) > 65_535:
            raise ValueError
        if found["six"] is not None:
            host = str(ipaddress.IPv6Address(found["six"]))
        else:
            host = "127.0.0.1" if found["four"] == "localhost" else str(ipaddress.IPv4Address(found["four"]))
    except ValueError:
        why = "does not name an IP address and a port, as in 127.0.0.1:8080"
        raise StartError(f"{text} {why}", is_final=True) from None
    return Address(scheme, host=host, port=int(found["port"]))


def _usual_socket() -> str:
    home = os.environ.get("CODEX_HOME")
    return str((Path(home) if home else Path.home() / ".codex") / "run" / "app-server.sock")
