#!/usr/bin/env python3
"""Builds recorded.json.gz from a folder of recorded sessions: RELEASE/CASE.json with the member `records`.

    python3 clients/vectors/record.py FOLDER
    UPDATE_EXPECT=1 cargo test -p codex-client --test recorded

A record has the stream that it was seen on (`s`) and the message (`m`). Kept are the messages that a server has sent
over JSON-RPC; each distinct one is stored once. Events of `codex proto`, which have no method, get the one under which
the app-server sends them. Sessions of `codex exec`, which is no server, are left out. The second command adds the states
that the library in Rust reads from them, which the other two are compared with.
"""

import gzip
import json
import sys
from pathlib import Path

STREAMS = ("response", "request", "notification", "event")


def messages(records):
    """The messages of a server, in their order."""
    program, session = None, None
    for record in records:
        stream, message = record["s"], record["m"]
        if stream == "client" and "start" in message:
            program = message["start"][0]
        if stream not in STREAMS or program == "exec":
            continue
        if program == "proto":
            session = message["msg"].get("session_id", session)
            message = {"method": "codex/event/" + message["msg"]["type"], "params": {**message, "conversationId": session}}
        yield json.dumps(message, ensure_ascii=False, separators=(",", ":"))


def main():
    lines, sessions = {}, {}
    for path in sorted(Path(sys.argv[1]).glob("*/*.json")):
        told = messages(json.loads(path.read_text("utf-8"))["records"])
        places = [lines.setdefault(line, len(lines)) for line in told]
        if places:
            sessions[f"{path.parent.name}/{path.stem}"] = places
    text = json.dumps({"lines": list(lines), "sessions": sessions, "states": {}}, ensure_ascii=False, separators=(",", ":"))
    target = Path(__file__).with_name("recorded.json.gz")
    # Without a time, so that the same sessions give the same file.
    target.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{len(sessions)} sessions, {len(lines)} distinct messages, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
