import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, expect, test } from '@jest/globals';
import { toEventPosition } from '../../../../../infra/eventstoredb/read/positions.ts';
import {
  buildStreamRequest,
  readAll,
  readEndOfLog,
  type ReadAllResult,
} from '../../../../../infra/eventstoredb/read/readAll.ts';
import { startEndlessServer } from '../../../../support/servers/eventstoredb-node/endlessServer.ts';

const MIB = 1024 * 1024;
type Client = Awaited<ReturnType<typeof startEndlessServer>>['client'];

let stop: () => void;
afterEach(() => stop());

/** Starts a server that sends 64 of these events. */
async function start(event: { type?: string; bytes?: number }) {
  const server = await startEndlessServer(event);
  ({ stop } = server);
  return server;
}

const read = (client: Client, limit: number, maxBytes?: number): Promise<ReadAllResult> =>
  readAll(client, buildStreamRequest('session-s', { direction: 'forwards', limit }), {
    requiresLeader: false,
    signal: AbortSignal.timeout(30_000),
    maxBytes,
    onActivity: () => undefined,
  });

async function untilTrue(condition: () => boolean): Promise<void> {
  while (!condition()) await turn();
}

test('a read ends with the requested number of events, even if the server sends more', async () => {
  const { client, wasCancelled } = await start({});
  expect((await read(client, 3)).events.map(({ revision }) => revision)).toEqual([0, 1, 2]);
  await untilTrue(wasCancelled);
});

test('a read of the end of the log takes one event', async () => {
  const { client, wasCancelled } = await start({});
  const signal = AbortSignal.timeout(30_000);
  const end = await readEndOfLog(client, { requiresLeader: false, signal });
  expect(end).toBe(toEventPosition(0));
  await untilTrue(wasCancelled);
});

test.each([
  ['of data', { bytes: MIB }],
  ['of types', { type: 't'.repeat(MIB) }],
])('a read rejects an answer of 40 MiB %s', async (_what, event) => {
  const { client, wasCancelled } = await start(event);
  await expect(read(client, 1_000)).rejects.toThrow('an answer of more than 40 MiB');
  await untilTrue(wasCancelled);
});

test('a page ends with the event that reaches its size', async () => {
  const { client } = await start({ bytes: MIB });
  expect((await read(client, 1_000, 2 * MIB)).events).toHaveLength(2);
});
