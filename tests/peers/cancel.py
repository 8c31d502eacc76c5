"""A client of `aster mcp serve` that cancels a call, for aster-cli/tests/inspector.rs.

    cancel.py ERA AUDIT COMMAND...

Starts a long operation of the server `everything`, cancels it when it first reports progress, waits on the open
connection until the audit has the outcome, and makes one more call. Prints what it saw as JSON.
"""

import json
import sys
from pathlib import Path

import anyio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

LONG = "everything/trigger-long-running-operation"


async def bridge(client, action, progress=None, **request):
    result = await client.call_tool("aster_mcp", {"action": action, **request}, progress_callback=progress)
    return result.content[0].text


async def call_and_cancel(client):
    with anyio.CancelScope() as scope:

        async def on_progress(*_):
            scope.cancel()

        await bridge(client, "execute", on_progress, name=LONG, arguments={"duration": 100, "steps": 100})
    return scope.cancelled_caught


async def outcome(audit):
    while True:
        for line in audit.read_text().splitlines(keepends=True):
            # A line without its end is still being written.
            record = json.loads(line) if line.endswith("\n") else {}
            if record.get("tool") == LONG and record["stage"] == "outcome":
                return record["outcome"]
        await anyio.sleep(0.05)


async def main(era, audit, command, *arguments):
    server = stdio_client(StdioServerParameters(command=command, args=arguments))
    with anyio.fail_after(90):
        async with Client(server, mode=era) as client:
            while "starting" in await bridge(client, "search", server="everything"):
                await anyio.sleep(0.05)
            seen = {
                "protocol": client.protocol_version,
                "cancelled": await call_and_cancel(client),
                "outcome": await outcome(Path(audit)),
                "afterwards": await bridge(client, "execute", name="everything/echo", arguments={"message": "here"}),
            }
    print(json.dumps(seen))


anyio.run(main, *sys.argv[1:])
