import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { Battle } from '../attack.ts';
import { sendHints } from '../processes/hints.ts';

const CLIENTS = 32;
const WEBHOOKS = 16;

/** Webhooks that are changed, deleted and created all the time; their receivers answer nothing. */
export async function changeWebhooks({ clients, call, prey }: Battle): Promise<void> {
  const server = createServer((_request, response) => sendHints(response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const receiver = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const ids: (string | undefined)[] = [];
  await clients(CLIENTS, async (agent, client, turn) => {
    const at = client % WEBHOOKS;
    const id = ids[at];
    const body = JSON.stringify({ url: `${receiver}${client}/${turn}` });
    // Each webhook has something to deliver.
    if (client >= WEBHOOKS)
      return call({
        method: 'POST',
        path: `/v1/agents/${prey.agents.quick}/run`,
        body: JSON.stringify({ input: 'hi' }),
        agent,
      });
    if (id === undefined) {
      const created = await call({ method: 'POST', path: '/v1/webhooks', body, agent });
      ids[at] = /"webhook_id":"(\w+)"/.exec(created?.head ?? '')?.[1];
      return undefined;
    }
    const path = `/v1/webhooks/${id}`;
    if (turn % 50 === 0) {
      ids[at] = undefined;
      return call({ method: 'DELETE', path, agent });
    }
    return call({ method: 'PATCH', path, body, agent });
  });
  server.close();
  server.closeAllConnections();
}

/** Runs with a provider that sends informational responses without end. */
export async function hintingProvider({ clients, call, prey }: Battle): Promise<void> {
  const path = `/v1/agents/${prey.agents.hinting}/run`;
  const body = JSON.stringify({ input: 'hi' });
  await clients(CLIENTS, (agent) => call({ method: 'POST', path, body, agent }));
}
