// A client of an MCP server that does what it is told, with the TypeScript SDK: client.py says how.
//
//     client.mjs sdk legacy|modern TARGET

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const require = createRequire(join(process.env.ASTER_PEERS, 'package.json'));
const { Client, ProtocolError, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');

const [, era, target] = process.argv.slice(2);

let changes = 0;
let changed = () => {};

function transport({ url, token, command, env }) {
    if (url) {
        const headers = token ? { Authorization: `Bearer ${token}` } : {};
        return new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
    }
    return new StdioClientTransport({ command: command[0], args: command.slice(1), env, stderr: 'inherit' });
}

async function answer(request) {
    const call = (name, options) => client.callTool({ name, arguments: request.arguments }, options);
    if (request.list) {
        return client.listTools(undefined, { cacheMode: 'bypass' });
    }
    if (request.call) {
        const progress = [];
        const onprogress = (report) => progress.push([report.progress, report.total ?? null, report.message ?? null]);
        try {
            return { result: await call(request.call, { onprogress }), progress };
        } catch (error) {
            if (!(error instanceof ProtocolError)) throw error;
            return { error: { code: error.code, message: error.message } };
        }
    }
    if (request.cancel) {
        const given = new AbortController();
        const options = { onprogress: () => given.abort(), signal: given.signal };
        return call(request.cancel, options).then(
            () => ({ cancelled: false }),
            (error) => {
                if (!given.signal.aborted) throw error;
                return { cancelled: true };
            },
        );
    }
    while (changes < request.changes) {
        await new Promise((resolve) => (changed = resolve));
    }
    return { changes };
}

const onChanged = () => {
    changes += 1;
    changed();
};
const client = new Client(
    { name: 'typescript', version: '1' },
    {
        versionNegotiation: { mode: era === 'modern' ? 'auto' : era },
        listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged } },
    },
);
await client.connect(transport(JSON.parse(target)));
const say = (line) => console.log(JSON.stringify(line));
say({ protocol: client.getNegotiatedProtocolVersion(), instructions: client.getInstructions() ?? null });
for await (const line of createInterface({ input: process.stdin })) {
    say(await answer(JSON.parse(line)));
}
await client.close();
