import { setImmediate as turn } from 'node:timers/promises';
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import grpc from '@grpc/grpc-js';
import { afterEach, expect, test } from '@jest/globals';
import { parseConnectionString } from '../../../../../infra/eventstoredb/connection/connectionString.ts';
import { openHostClient } from '../../../../../infra/eventstoredb/connection/hostClient.ts';
import { toEventPosition } from '../../../../../infra/eventstoredb/read/positions.ts';
import {
  buildStreamRequest,
  readAll,
  readEndOfLog,
  type ReadAllResult,
} from '../../../../../infra/eventstoredb/read/readAll.ts';
import { eventResponse } from '../../../../support/servers/eventstoredb-node/messages.ts';

const MIB = 1024 * 1024;
/** More than any answer may take. */
const SENT_EVENTS = 64;

type ReadCall = grpc.ServerWritableStream<streamsPb.ReadReq, streamsPb.ReadResp>;

let stop = (): void => undefined;
afterEach(() => stop());

const eventOf = (revision: number, { type = 'happened', bytes = 0 }): streamsPb.ReadResp =>
  eventResponse({
    id: crypto.randomUUID(),
    stream: 'session-s',
    revision: BigInt(revision),
    position: BigInt(revision),
    next: BigInt(revision + 1),
    created: 0n,
    type,
    contentType: 'application/json',
    data: Buffer.alloc(bytes, ' '),
    metadata: Buffer.alloc(0),
  });

/** A server that answers each read with 64 events, whatever was requested, and does not end the call. */
async function startEndlessServer(event: { type?: string; bytes?: number }) {
  const server = new grpc.Server();
  let cancelled = false;
  server.addService(streamsGrpc.StreamsService, {
    async read(call: ReadCall) {
      call.on('cancelled', () => (cancelled = true));
      for (let revision = 0; revision < SENT_EVENTS && !call.cancelled; revision += 1) {
        if (!call.write(eventOf(revision, event))) await turn();
      }
    },
  });
  const { promise: bound, resolve } = Promise.withResolvers<number>();
  server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (_error, port) =>
    resolve(port),
  );
  const target = parseConnectionString(`esdb://127.0.0.1:${await bound}?tls=false`);
  const client = openHostClient(target.connectionTo(target.seeds[0]!));
  stop = () => {
    client.close();
    server.forceShutdown();
  };
  return { client, wasCancelled: () => cancelled };
}

type Client = Awaited<ReturnType<typeof startEndlessServer>>['client'];

const read = (client: Client, limit: number, maxBytes?: number): Promise<ReadAllResult> =>
  readAll(client, buildStreamRequest('session-s', { direction: 'forwards', limit }), {
    requiresLeader: false,
    signal: AbortSignal.timeout(5_000),
    maxBytes,
    onActivity: () => undefined,
  });

async function untilTrue(condition: () => boolean): Promise<void> {
  while (!condition()) await turn();
}

test('a read ends with the requested number of events, even if the server sends more', async () => {
  const { client, wasCancelled } = await startEndlessServer({});
  expect((await read(client, 3)).events.map(({ revision }) => revision)).toEqual([0, 1, 2]);
  await untilTrue(wasCancelled);
});

test('a read of the end of the log takes one event', async () => {
  const { client, wasCancelled } = await startEndlessServer({});
  const signal = AbortSignal.timeout(5_000);
  const end = await readEndOfLog(client, { requiresLeader: false, signal });
  expect(end).toBe(toEventPosition(0));
  await untilTrue(wasCancelled);
});

test.each([
  ['of data', { bytes: MIB }],
  ['of types', { type: 't'.repeat(MIB) }],
])('a read rejects an answer of 40 MiB %s', async (_what, event) => {
  const { client, wasCancelled } = await startEndlessServer(event);
  await expect(read(client, 1_000)).rejects.toThrow('an answer of more than 40 MiB');
  await untilTrue(wasCancelled);
});

test('a page ends with the event that reaches its size', async () => {
  const { client } = await startEndlessServer({ bytes: MIB });
  expect((await read(client, 1_000, 2 * MIB)).events).toHaveLength(2);
});
