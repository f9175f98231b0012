"""Proofs that both sides of a connection know the same token, without sending it."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets

#: The scheme of the header that carries nonces and proofs.
SCHEME = "Codex-Proof"
_NONCE = re.compile(r"[0-9a-fA-F]{64}\Z")


def address_of(writer: asyncio.StreamWriter) -> str:
    """The address that a connection leads to."""
    host, port = writer.get_extra_info("peername")[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Exchange:
    """The exchange of proofs over one connection."""

    def __init__(self, token: str, address: str, nonce: str | None = None) -> None:
        self._token = token.encode()
        self.address = address
        self.nonce = nonce or secrets.token_hex(32)

    @property
    def hello(self) -> str:
        """The header of the first request."""
        return f"{SCHEME} nonce={self.nonce} address={self.address}"

    def prove(self, nonce: object, proofs: object) -> str:
        """The client's proof, once the server has given its own."""
        given = proofs.split(",", 2)[:2] if isinstance(proofs, str) else []
        if (
            isinstance(nonce, str)
            and _NONCE.match(nonce)
            and any(hmac.compare_digest(proof.encode(), self._mac("server", nonce).encode()) for proof in given)
        ):
            return self._mac("client", nonce)
        raise ValueError("it did not prove that it knows the token, so the token was not sent (see `send_token`)")

    def answer(self, challenge: str | None) -> str:
        """The header of the second request, from that of the server's response to the first."""
        scheme, _, rest = (challenge or "").partition(" ")
        parts = dict(part.partition("=")[::2] for part in rest.split(" "))
        is_known = scheme.lower() == SCHEME.lower()
        return f"{SCHEME} proof={self.prove(parts.get('nonce') if is_known else None, parts.get('proof'))}"

    def _mac(self, side: str, nonce: str) -> str:
        parts = (f"codex {side}", self.nonce, nonce, self.address)
        return hmac.new(self._token, "".join(f"{part}\n" for part in parts).encode(), hashlib.sha256).hexdigest()
