import { rm } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  converse,
  expectDamaged,
  expectWhole,
  run,
  type Found,
} from '../../support/http/damagedSession.ts';
import {
  startEventStoreDbNode,
  type EventStoreDbNode,
} from '../../support/servers/eventstoredb-node/index.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

let folder: string;
let node: EventStoreDbNode;
let service: TestService;
beforeAll(async () => {
  folder = await temporaryFolder();
  node = await startEventStoreDbNode({ folder });
  service = await startTestService({ text: 'Hello.' }, { EVENTSTOREDB_URL: node.connectionString });
}, 180_000);
afterAll(async () => {
  await service.close();
  await node.close();
  await rm(folder, { recursive: true });
});

const written = (stream: string, type: string, json: string): void => {
  const event = {
    id: randomUUID(),
    type,
    contentType: 'application/json',
    data: Buffer.from(json),
    metadata: Buffer.from('{}'),
  };
  expect(node.log.append(stream, 'any', [event]).kind).toBe('success');
};

/** Sets a stream's metadata, like another user of the server. */
const setMetadata = (stream: string, metadata: object): void =>
  written(`$$${stream}`, '$metadata', JSON.stringify(metadata));

/** Metadata for a session of three turns with the revisions 0 to 6. */
const HIDDEN: readonly [metadata: object, found: Found][] = [
  [{ $tb: 1 }, { first_revision: 1, last_revision: 6 }],
  [{ $tb: 5 }, { first_revision: 5, last_revision: 6 }],
  [{ $maxCount: 2 }, { first_revision: 5, last_revision: 6 }],
  [{ $maxAge: 1 }, { first_revision: null, last_revision: null }],
];

describe.each(HIDDEN)('a session whose stream has the metadata %j', (metadata, found) => {
  test.each([
    ['that is read again', () => service.restart()],
    ['in the cache', () => Promise.resolve()],
  ] as const)(
    '%s is reported as damaged, and as whole without the metadata; other sessions are unaffected',
    async (_how, prepare) => {
      const made = await converse(service, 3);
      setMetadata(made.stream, metadata);
      // $maxAge counts in seconds.
      if ('$maxAge' in metadata) await sleep(2_100);
      await prepare();
      await expectDamaged(service, made, found);
      setMetadata(made.stream, {});
      await expectWhole(service, made);
    },
  );
});

test.each([
  ['deleted', false],
  ['tombstoned', true],
])(
  'a session whose stream was %s is reported as damaged, and others are unaffected',
  async (_how, hard) => {
    const made = await converse(service, 3);
    expect(node.log.remove(made.stream, 'any', hard).kind).toBe('success');
    await expectDamaged(service, made, { first_revision: null, last_revision: null });
    await service.restart();
    await expectDamaged(service, made, { first_revision: null, last_revision: null });
  },
);

test('a deleted session with a foreign event is reported as damaged', async () => {
  const made = await converse(service, 3);
  node.log.remove(made.stream, 'any', false);
  written(made.stream, 'order.paid', '{}');
  await expectDamaged(service, made, { first_revision: 7, last_revision: 7 });
});

test('a session with a foreign event is reported as damaged', async () => {
  const made = await converse(service, 3);
  written(made.stream, 'order.paid', '{}');
  await expectDamaged(service, made, { first_revision: 0, last_revision: 7 });
});

test('a run on a session with a hidden event at its end fails within seconds', async () => {
  const { agent, session, stream } = await converse(service, 1);
  const event = {
    id: randomUUID(),
    type: 'order.paid',
    contentType: 'application/octet-stream',
    data: Buffer.from([0]),
    metadata: new Uint8Array(),
  };
  node.log.append(stream, 'any', [event]);
  const began = performance.now();
  expectFailure(await run(service, agent, 'x', session), 'stream_damaged');
  expect(performance.now() - began).toBeLessThan(20_000);
});

test('a session is damaged while the server answers with the events of another session', async () => {
  const made = await converse(service, 3);
  const other = await converse(service, 3);
  const { readStream } = node.log;
  node.log.readStream = (stream, range) =>
    readStream(stream === made.stream ? other.stream : stream, range);
  try {
    await service.restart();
    await expectDamaged(service, made, { first_revision: null, last_revision: null });
  } finally {
    node.log.readStream = readStream;
  }
});
