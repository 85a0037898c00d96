import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

interface Message {
  id?: number;
  method: string;
  params: { protocolVersion: string; arguments: { nth: number } };
}

/** An MCP server over HTTP. A test answers the calls, and makes listings fail like those of no session. */
export async function startForgetfulServer() {
  const calls = new Map<number, { id: number; response: ServerResponse }>();
  let sessions = 0;
  let forgotten: string | undefined;
  let refusedListings = 0;

  function reply(response: ServerResponse, id: number, result: object): void {
    response.writeHead(200, {
      'content-type': 'application/json',
      'mcp-session-id': String(sessions),
    });
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
  }

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST') return void response.writeHead(405).end();
    const { id, method, params } = (await json(request)) as Message;
    if (id === undefined) return void response.writeHead(202).end();
    if (method === 'initialize') {
      sessions += 1;
      const { protocolVersion } = params;
      const serverInfo = { name: 'forgetful', version: '1' };
      return reply(response, id, { protocolVersion, capabilities: { tools: {} }, serverInfo });
    }
    if (method === 'tools/call') return void calls.set(params.arguments.nth, { id, response });
    if (request.headers['mcp-session-id'] !== forgotten)
      return reply(response, id, { tools: [{ name: 'act', inputSchema: { type: 'object' } }] });
    refusedListings += 1;
    return void response.writeHead(404).end();
  }

  const server = createServer((request, response) => {
    receive(request, response).catch(() => response.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    transport: { kind: 'http', url: `http://127.0.0.1:${port}/mcp`, headers: {} } as const,
    /** The calls that it has received, by their argument `nth`. */
    calls: () => [...calls.keys()],
    answer(nth: number) {
      const { id, response } = calls.get(nth)!;
      reply(response, id, { content: [{ type: 'text', text: `answer ${nth}` }] });
    },
    forget: (nth: number) => void calls.get(nth)!.response.writeHead(404).end(),
    disconnect: (nth: number) => void calls.get(nth)!.response.destroy(),
    forgetListings: () => void (forgotten = String(sessions)),
    refusedListings: () => refusedListings,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
