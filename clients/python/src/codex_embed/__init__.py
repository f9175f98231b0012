"""A client of the Codex app-server: supervisor, JSON-RPC, events of every release, and the state of threads."""

from . import approvals, events
from .connection import Client, Options, connect
from .errors import CallError, ClosedError, CodexError, LateError, RefusedError, StartError, TurnError
from .feed import Events
from .registry import Life, Registry
from .router import notification, request, response
from .state import State
from .supervisor import Launch, ServerState, Supervisor
from .tables import METHODS, NOTIFICATIONS, SERVER_REQUESTS
from .transcript import Question, Transcript, event_of, read_line
from .version import VERSION

__version__ = VERSION

__all__ = [
    "METHODS",
    "NOTIFICATIONS",
    "SERVER_REQUESTS",
    "CallError",
    "Client",
    "ClosedError",
    "CodexError",
    "Events",
    "LateError",
    "Launch",
    "Life",
    "Options",
    "Question",
    "RefusedError",
    "Registry",
    "ServerState",
    "StartError",
    "State",
    "Supervisor",
    "Transcript",
    "TurnError",
    "approvals",
    "connect",
    "event_of",
    "events",
    "notification",
    "read_line",
    "request",
    "response",
]
