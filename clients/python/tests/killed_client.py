"""A client for test_kills.py, which kills it: runs a turn and tells the id of its thread."""

import asyncio
import json
import sys

from codex_embed import AsyncCodex, CodexConfig


async def main():
    wish = json.loads(sys.argv[1])
    async with AsyncCodex(CodexConfig(**wish["config"])) as codex:
        client = await codex.client()
        opened = await client.call("thread/start", {"sandbox": "read-only"})
        thread = opened["thread"]["id"]
        print(thread, flush=True)
        text = {"type": "text", "text": "Begin."}
        await client.call("turn/start", {"threadId": thread, "input": [text], "clientUserMessageId": wish["name"]})
        # It stays until it is killed.
        await asyncio.Event().wait()


asyncio.run(main())
