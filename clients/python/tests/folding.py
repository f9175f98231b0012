"""Bytes of a server in pieces, and the state that they leave."""

import json

from codex_embed.state import State
from codex_embed.transcript import Transcript, event_of


def folded(pieces):
    """The state after bytes that arrive in pieces."""
    transcript, state = Transcript(), State()
    for piece in pieces:
        for message in transcript.push(piece):
            if (event := event_of(message)) is not None:
                state.apply(event)
    for message in transcript.finish():
        state.apply(event_of(message))
    return state


def state_of(pieces):
    """The same as JSON shows it."""
    return json.loads(json.dumps(folded(pieces).to_value()))


def cut(data, sizes):
    """Data in pieces of these sizes, over and over."""
    at = turn = 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        yield data[at : at + size]
        at, turn = at + size, turn + 1
