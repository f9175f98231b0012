"""Drives `codex mcp-server` with the MCP SDK for Python (`pip install mcp`, 2.3 or later).

Prints one JSON line: the version that was spoken, the tools, the answers, and the questions that were asked.

usage: mcp_sdk.py stdio|http legacy|auto|VERSION PROGRAM-OR-URL [TOKEN]
"""

import asyncio
import json
import os
import sys

import httpx2
import mcp_types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

way, mode, where, *token = sys.argv[1:]
asked, progress = [], []


async def approve(context, params):
    asked.append(params.message)
    return mcp_types.ElicitResult(action="accept", content={})


async def note(done, total, message):
    progress.append(message)


def transport():
    if way == "stdio":
        return stdio_client(StdioServerParameters(command=where, args=["mcp-server"], env=dict(os.environ)))
    headers = {"Authorization": f"Bearer {token[0]}"}
    return streamable_http_client(where, http_client=httpx2.AsyncClient(headers=headers, timeout=60))


async def main():
    async with Client(transport(), mode=mode, elicitation_callback=approve) as client:
        tools = await client.list_tools()
        first = await client.call_tool("codex", {"prompt": "a"}, progress_callback=note)
        thread = first.structured_content["threadId"]
        second = await client.call_tool("codex-reply", {"threadId": thread, "prompt": "b"})
        wrong = await client.call_tool("codex", {})
        print(json.dumps({
            "version": client.protocol_version,
            "tools": [tool.name for tool in tools.tools],
            "answers": [first.content[0].text, second.content[0].text],
            "wrong": wrong.is_error,
            "asked": len(asked),
            "progress": progress,
        }))


asyncio.run(asyncio.wait_for(main(), 60))
