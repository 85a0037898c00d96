import { once } from 'node:events';
import { createServer, type Http2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { parseConnectionString } from '../../../../../infra/eventstoredb/connection/connectionString.ts';
import { openHostClient } from '../../../../../infra/eventstoredb/connection/hostClient.ts';

/** A gRPC server that knows no call, and records which encodings each call accepts. */
let server: Http2Server;
let accepted: Map<string, unknown>;

beforeEach(async () => {
  accepted = new Map();
  server = createServer().listen(0, '127.0.0.1');
  server.on('stream', (stream, headers) => {
    accepted.set(String(headers[':path']).split('/').at(-1)!, headers['grpc-accept-encoding']);
    const unimplemented = { 'content-type': 'application/grpc', 'grpc-status': '12' };
    stream.respond({ ':status': 200, ...unimplemented }, { endStream: true });
  });
  await once(server, 'listening');
});
afterEach(() => void server.close());

async function acceptedWith(scheme: string, options: string): Promise<Record<string, unknown>> {
  const { port } = server.address() as AddressInfo;
  const target = parseConnectionString(`${scheme}://127.0.0.1:${port}?tls=false${options}`);
  const client = openHostClient(target.connectionTo(target.seeds[0]!));
  const ended = async (call: { on(event: 'error', listener: () => void): unknown }) =>
    new Promise<void>((resolve) => void call.on('error', resolve));
  await Promise.all([
    ended(await client.openBatchAppend(false)),
    ended(await client.openRead(new streamsPb.ReadReq(), false)),
    expect(client.readGossip(AbortSignal.timeout(5_000))).rejects.toThrow('UNIMPLEMENTED'),
  ]);
  client.close();
  return Object.fromEntries(accepted);
}

test('servers are asked not to compress, because from 25.1 on they compress all for clients that accept it', async () => {
  const calls = { BatchAppend: 'identity', Read: 'identity' };
  expect(await acceptedWith('esdb', '')).toEqual(calls);
});

test('compression=gzip accepts compressed responses', async () => {
  const gzip = 'identity,deflate,gzip';
  const calls = { BatchAppend: gzip, Read: gzip };
  expect(await acceptedWith('kurrentdb', '&compression=gzip')).toEqual(calls);
});

test('another compression is an error that names what there is', () => {
  expect(() => parseConnectionString('esdb://localhost?compression=zstd')).toThrow(
    'The URL of the event store has an unknown compression; use none or gzip.',
  );
});
