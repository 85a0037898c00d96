/**
 * The rights that docs/deploy.md grants to the user of a cluster with passwords, by the requests of
 * that page. They suffice, other users can't access Turnlog's streams, and a missing right is named.
 */
import { rm } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import eventstore from '@eventstore/db-client';
import { openEventStoreDb } from '../../../infra/eventstoredb/eventStore.ts';
import type { EventStore } from '../../../shared/ports/eventStore.ts';
import {
  follow,
  holds,
  idsOf,
  newEvents,
  newStream,
  readAll,
  refusedWith,
} from '../../contracts/eventStore/support.ts';
import {
  startEventStoreDbNode,
  type EventStoreDbNode,
} from '../../support/servers/eventstoredb-node/index.ts';
import { eventually } from '../../support/processes/operator.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { createUser } from '../../support/servers/eventstoredb/nodeUsers.ts';

const { EventStoreDBClient, jsonEvent } = eventstore;

const PASSWORD = 'a password';
const NO_USERS: string[] = [];
const READERS = ['turnlog', '$admins'];
const DEFAULT_ACL = {
  $r: ['turnlog'],
  $w: ['turnlog'],
  $mr: ['turnlog'],
  $d: ['$admins'],
  $mw: ['$admins'],
};

let folder: string;
let node: EventStoreDbNode;
const cleanups: Array<() => Promise<unknown>> = [];

beforeEach(async () => {
  folder = await temporaryFolder();
  node = await startEventStoreDbNode({ folder, tls: true, credentials: 'admin:changeit' });
  for (const loginName of ['turnlog', 'other'])
    expect(await createUser(node.port, loginName, PASSWORD)).toBe(201);
});
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
  await node.close();
  await rm(folder, { recursive: true });
});

const as = (user: string): string =>
  node.connectionString.replace('admin:changeit', `${user}:${encodeURIComponent(PASSWORD)}`);

function connect(connectionString: string) {
  const client = EventStoreDBClient.connectionString(connectionString);
  cleanups.push(() => client.dispose());
  return client;
}

async function open(user: string): Promise<EventStore> {
  const store = await openEventStoreDb({ connectionString: as(user) });
  cleanups.push(store.close);
  return store;
}

/** Makes the operator's requests of that page, with changed access control lists. */
async function grant({
  readers = READERS,
  ...changed
}: { readers?: string[] } & Partial<typeof DEFAULT_ACL> = {}): Promise<void> {
  const admin = connect(node.connectionString);
  const settings = { $userStreamAcl: { ...DEFAULT_ACL, ...changed } };
  await admin.appendToStream(
    '$settings',
    jsonEvent({ type: 'update-default-acl', data: settings }),
  );
  await admin.appendToStream(
    '$$$all',
    jsonEvent({ type: '$metadata', data: { $acl: { $r: readers } } }),
  );
}

const refusal = (attempt: Promise<unknown>): Promise<unknown> =>
  attempt.then(
    () => undefined,
    (error: unknown) => (error as Error).cause,
  );

describe('a user without groups', () => {
  test('appends, reads existing and absent streams, and subscribes with the documented rights', async () => {
    await grant();
    const store = await open('turnlog');
    const [stream, events] = [newStream(), newEvents(3)];
    expect(await readAll(store, stream)).toEqual([]);
    const { position } = await store.append(stream, 'no_stream', events);
    expect(idsOf(await readAll(store, stream))).toEqual(idsOf(events));
    expect(await store.head()).toBe(position);
    const following = follow(store, undefined);
    const batches = await following.until(holds([stream], 3));
    following.stop();
    expect(idsOf(batches.flatMap((batch) => batch.events))).toEqual(idsOf(events));
    expect(store.trouble()).toBeUndefined();
  });

  test.each([
    [
      '$w',
      { $w: NO_USERS },
      (store: EventStore, stream: string) => store.append(stream, 'no_stream', newEvents(1)),
      (stream: string) => `append to ${stream} ($w)`,
    ],
    ['$r', { $r: NO_USERS }, readAll, (stream: string) => `read ${stream} ($r)`],
    ['$mr', { $mr: NO_USERS }, readAll, (stream: string) => `read the metadata of ${stream} ($mr)`],
  ])(
    'gets an error that names the missing right: %s on a stream',
    async (_, changed, call, named) => {
      await grant(changed);
      const store = await open('turnlog');
      const stream = newStream();
      const calling = call(store, stream);
      await refusedWith('store_unavailable', calling);
      expect(await refusal(calling)).toMatchObject({
        message: `The event store does not let this user ${named(stream)}.`,
      });
    },
  );

  test('causes a trouble of the store after three denials without an allowed call', async () => {
    await grant({ $w: NO_USERS });
    const store = await open('turnlog');
    const stream = newStream();
    for (let times = 0; times < 3; times += 1)
      await refusal(store.append(stream, 'no_stream', newEvents(1)));
    expect(store.trouble()).toBe(
      `The event store does not let this user append to ${stream} ($w).`,
    );
  });

  test('causes a trouble that names the missing right: $r on $all', async () => {
    await grant({ readers: ['$admins'] });
    const store = await open('turnlog');
    const trouble = await eventually(
      () => Promise.resolve(store.trouble()),
      (sentence) => sentence !== undefined,
    );
    expect(trouble).toMatch(
      /does not let this user read \$all, which takes the right \$r in the metadata of \$all/,
    );
    await refusedWith('store_unavailable', store.head());
  });

  test('cannot read, write, hide or delete streams of Turnlog', async () => {
    await grant();
    const store = await open('turnlog');
    const [stream, events] = [newStream(), newEvents(2)];
    await store.append(stream, 'no_stream', events);
    const other = connect(as('other'));
    const denied = { type: 'access-denied' };
    await expect(
      other.appendToStream(stream, jsonEvent({ type: 'foreign', data: {} })),
    ).rejects.toMatchObject(denied);
    await expect(other.setStreamMetadata(stream, { maxCount: 1 })).rejects.toMatchObject(denied);
    await expect(other.deleteStream(stream)).rejects.toMatchObject(denied);
    await expect(other.tombstoneStream(stream)).rejects.toMatchObject(denied);
    for (const mine of [stream, '$all']) {
      const reading = (async () => {
        for await (const _ of mine === '$all' ? other.readAll() : other.readStream(mine)) return;
      })();
      await expect(reading).rejects.toMatchObject(denied);
    }
    expect(idsOf(await readAll(store, stream))).toEqual(idsOf(events));
  });

  test('can access all streams without the documented access control lists', async () => {
    const other = connect(as('other'));
    const stream = newStream();
    await other.appendToStream(stream, jsonEvent({ type: 'foreign', data: {} }));
    await other.tombstoneStream(stream);
  });
});
