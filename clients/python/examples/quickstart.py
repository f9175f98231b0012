"""Asks about a folder and prints the answer: python3 quickstart.py [FOLDER]"""

import sys

from codex_embed import Codex, Sandbox, TurnError

folder = sys.argv[1] if len(sys.argv) > 1 else "."

with Codex() as codex:
    thread = codex.thread_start(cwd=folder, sandbox=Sandbox.read_only)
    try:
        result = thread.run("Explain this folder in three bullets.")
    except TurnError as error:
        sys.exit(f"the turn has failed: {error}")
    print(result.final_response)
    print(f"{len(result.items)} items, thread {thread.id}", file=sys.stderr)
