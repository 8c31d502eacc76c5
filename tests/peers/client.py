"""A client of an MCP server that does what it is told, for aster-cli/tests/clients.rs.

    client.py mcp|fastmcp legacy|modern TARGET

TARGET is `{"command": […], "env": {…}}` or `{"url": …, "token": …}`. Prints what it connected to, then for each request
on standard input, a line of JSON, an answer. client.mjs takes the same:

    {"list": {}}                     {"tools": […]}, as the library has them
    {"call": NAME, "arguments": …}   {"result": …, "progress": […]}, or {"error": …} for what is no result
    {"cancel": NAME, "arguments": …} {"cancelled": …}: calls, and gives up when the first progress arrives
    {"changes": NUMBER}              {"changes": …}, when at least so many changes of the list have been heard of
"""

import json
import sys
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
from mcp.client.subscriptions import listen
from mcp.shared.exceptions import MCPError
from mcp_types import Implementation, ToolListChangedNotification
from mcp_types.version import MODERN_PROTOCOL_VERSIONS


class Changes:
    def __init__(self):
        self.count = 0
        self.changed = anyio.Event()

    def hear(self):
        self.count += 1
        self.changed.set()
        self.changed = anyio.Event()

    async def on_message(self, message):
        if isinstance(message, ToolListChangedNotification):
            self.hear()

    async def subscribe(self, session, *, task_status):
        async with listen(session, tools_list_changed=True) as subscription:
            task_status.started()
            async for _ in subscription:
                self.hear()


def dump(model):
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


@asynccontextmanager
async def sdk(target, **options):
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    async with AsyncExitStack() as stack:
        if "url" in target:
            headers = {"Authorization": f"Bearer {target['token']}"} if target.get("token") else None
            http = await stack.enter_async_context(create_mcp_http_client(headers=headers))
            transport = streamable_http_client(target["url"], http_client=http)
        else:
            command, *arguments = target["command"]
            transport = stdio_client(
                StdioServerParameters(command=command, args=arguments, env=target.get("env"))
            )
        client = await stack.enter_async_context(Client(transport, **options))
        yield client, client.list_tools, client.call_tool


@asynccontextmanager
async def fastmcp(target, **options):
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

    if "url" in target:
        transport = StreamableHttpTransport(target["url"], auth=target.get("token"))
    else:
        command, *arguments = target["command"]
        transport = StdioTransport(command, arguments, env=target.get("env"), keep_alive=False)
    async with Client(transport, **options) as client:

        async def call(name, arguments, progress_callback):
            return await client.call_tool_mcp(name, arguments, progress_handler=progress_callback)

        yield client, client.list_tools_mcp, call


async def answer(request, changes, list_tools, call):
    arguments, progress = request.get("arguments"), []
    if "list" in request:
        return dump(await list_tools())
    if "call" in request:

        async def on_progress(*report):
            progress.append(report)

        try:
            result = await call(request["call"], arguments, progress_callback=on_progress)
        except MCPError as error:
            return {"error": {"code": error.code, "message": error.message}}
        return {"result": dump(result), "progress": progress}
    if "cancel" in request:
        with anyio.CancelScope() as scope:

            async def on_first_progress(*_):
                scope.cancel()

            await call(request["cancel"], arguments, progress_callback=on_first_progress)
        return {"cancelled": scope.cancelled_caught}
    while changes.count < request["changes"]:
        await changes.changed.wait()
    return {"changes": changes.count}


def say(line):
    print(json.dumps(line), flush=True)


async def main(library, era, target):
    changes = Changes()
    options = {
        "mode": "auto" if era == "modern" else era,
        "client_info": Implementation(name=library, version="1"),
        "message_handler": changes.on_message,
    }
    connect = {"mcp": sdk, "fastmcp": fastmcp}[library]
    async with (
        connect(json.loads(target), **options) as (client, list_tools, call),
        anyio.create_task_group() as tasks,
    ):
        if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
            # FastMCP has no subscriptions of its own, and shows the SDK's session.
            await tasks.start(changes.subscribe, client.session)
        say({"protocol": client.protocol_version, "instructions": client.instructions})
        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            say(await answer(json.loads(line), changes, list_tools, call))
        tasks.cancel_scope.cancel()


anyio.run(main, *sys.argv[1:])
