import { setImmediate as turn } from 'node:timers/promises';
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import grpc from '@grpc/grpc-js';
import { parseConnectionString } from '../../../../infra/eventstoredb/connection/connectionString.ts';
import { openHostClient } from '../../../../infra/eventstoredb/connection/hostClient.ts';
import { eventResponse } from './messages.ts';

/** More than any answer may take. */
const SENT_EVENTS = 64;

type ReadCall = grpc.ServerWritableStream<streamsPb.ReadReq, streamsPb.ReadResp>;

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
export async function startEndlessServer(event: { type?: string; bytes?: number }) {
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
  const stop = (): void => {
    client.close();
    server.forceShutdown();
  };
  return { client, wasCancelled: () => cancelled, stop };
}
