"""FastMCP's proxy over standard input and output, in front of the command that follows the first argument.

`default` is what `create_proxy` makes of a transport: a session for every request. `shared` lends it one session that is
already open, which is the fastest that it can be, and which it warns of.
"""

import asyncio
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy


async def main() -> None:
    mode, command, *arguments = sys.argv[1:]
    transport = StdioTransport(command, arguments)
    if mode == "default":
        await create_proxy(transport).run_async(transport="stdio", show_banner=False)
        return
    async with Client(transport) as client:
        await create_proxy(client).run_async(transport="stdio", show_banner=False)


asyncio.run(main())
