import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';

/** A message that came, as its receiver read it. */
export interface Received {
  headers: Record<string, string>;
  text: string;
  body: {
    id: string;
    type: string;
    subject: string;
    streamrevision: number;
    accountid: string;
    data: Record<string, unknown>;
  };
}

export interface Receiver {
  url: string;
  received: Received[];
  /** What is answered from now on, after so many milliseconds; 204 at first. Undefined never answers. */
  answer(status: number | undefined, headers?: Record<string, string>, afterMs?: number): void;
  close(): Promise<void>;
}

/** The body, if the library finds it signed with the secret. */
export const verified = ({ text: body, headers }: Received, secret: string): unknown =>
  new Webhook(secret).verify(body, headers);

/** A receiver of webhooks on this machine. */
export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  let status: number | undefined = 204;
  let headers: Record<string, string> = {};
  let delayMs = 0;
  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    received.push({
      headers: request.headers as Record<string, string>,
      text: body,
      body: JSON.parse(body) as Received['body'],
    });
    await sleep(delayMs);
    if (status !== undefined) response.writeHead(status, headers).end();
  }
  const server = createServer((request, response) => {
    // Whoever sends may be stopped.
    take(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    answer(next, more = {}, afterMs = 0) {
      status = next;
      delayMs = afterMs;
      headers = more;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
