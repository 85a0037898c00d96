/**
 * A filtered backward read of `$all`, like a server's: the event arrives at once, the end after a
 * scan of the rest of the log.
 */
import { createRequire } from 'node:module';
import { rm } from 'node:fs/promises';
import type grpc from '@grpc/grpc-js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { expect, test } from '@jest/globals';
import { startEventStoreDbNode } from '../../support/servers/eventstoredb-node/index.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const FOREIGN_EVENTS = 3000;

// The client package uses its own copy of gRPC.
const clientRequire = createRequire(
  createRequire(import.meta.url).resolve('@eventstore/db-client'),
);
const { credentials } = clientRequire('@grpc/grpc-js') as typeof grpc;

const event = () => ({
  id: crypto.randomUUID(),
  type: 'happened',
  contentType: 'application/json',
  data: Buffer.from('{}'),
  metadata: Buffer.from(''),
});

function lastEventRequest(prefix: string): streamsPb.ReadReq {
  const { Options } = streamsPb.ReadReq;
  const { FilterOptions } = Options;
  const filter = new FilterOptions().setStreamIdentifier(
    new FilterOptions.Expression().setPrefixList([prefix]),
  );
  const options = new Options()
    .setAll(new Options.AllOptions())
    .setReadDirection(1)
    .setCount('1')
    .setFilter(filter);
  options.getAll()?.setEnd(new sharedPb.Empty());
  return new streamsPb.ReadReq().setOptions(options);
}

const nameIn = (response: streamsPb.ReadResp): string =>
  Buffer.from(
    response.getEvent()?.getEvent()?.getStreamIdentifier()?.getStreamName_asU8() ?? '',
  ).toString();

test('ends only after a scan of the whole log, long after its event', async () => {
  const folder = await temporaryFolder();
  const node = await startEventStoreDbNode({ folder });
  node.log.append('mine-1', 'no_stream', [event(), event()]);
  node.log.append('other', 'no_stream', Array.from({ length: FOREIGN_EVENTS }, event));
  node.log.append('mine-2', 'no_stream', [event()]);
  let scanned = 0;
  const { scan } = node.log;
  node.log.scan = (...range) => {
    const heads = scan(...range);
    scanned += heads.length;
    return heads;
  };
  const client = new streamsGrpc.StreamsClient(
    `${node.host}:${node.port}`,
    credentials.createInsecure(),
  );
  const read = async (prefix: string) => {
    const call = client.read(lastEventRequest(prefix));
    const streams: string[] = [];
    call.on('data', (response: streamsPb.ReadResp) => streams.push(nameIn(response)));
    await new Promise((resolve, reject) => call.on('end', resolve).on('error', reject));
    return streams;
  };
  try {
    expect([await read('mine-2'), scanned > FOREIGN_EVENTS]).toEqual([['mine-2'], true]);
    scanned = 0;
    // A second matching event directly before it ends the read early.
    expect([await read('other'), scanned < FOREIGN_EVENTS]).toEqual([['other'], true]);
  } finally {
    client.close();
    await node.close();
    await rm(folder, { recursive: true });
  }
});
