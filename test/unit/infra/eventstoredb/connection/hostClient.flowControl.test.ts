import { once } from 'node:events';
import { createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { expect, test } from '@jest/globals';
import { parseConnectionString } from '../../../../../infra/eventstoredb/connection/connectionString.ts';
import { openHostClient } from '../../../../../infra/eventstoredb/connection/hostClient.ts';

const MIB = 1024 * 1024;

test('a server may send a mebibyte ahead, on one call and on the connection', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const target = parseConnectionString(`esdb://127.0.0.1:${port}?tls=false`);
  const client = openHostClient(target.connectionTo(target.seeds[0]!));
  const calls = once(server, 'stream');
  const call = await client.openRead(new streamsPb.ReadReq(), false);
  const [stream] = (await calls) as [ServerHttp2Stream];
  const session = stream.session as ServerHttp2Session;
  // A later answer of the client: by then its window of the connection has arrived as well.
  await new Promise<void>((resolve) => void session.ping(() => resolve()));
  expect(session.remoteSettings.initialWindowSize).toBe(MIB);
  expect(session.state.remoteWindowSize).toBe(MIB);
  call.cancel();
  client.close();
  server.close();
});
