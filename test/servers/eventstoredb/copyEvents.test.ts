import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { EventStoreDBClient } from '@eventstore/db-client';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openEventStoreDb } from '../../../infra/eventstoredb/eventStore.ts';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore/eventStore.ts';
import { copyEvents } from '../../../shared/eventlog/copyEvents.ts';
import type { EventStore, Position, StoredEvent } from '../../../shared/ports/eventStore.ts';
import { compareHeads, type SavedHead } from '../../../shared/eventlog/reading/compareHeads.ts';
import { readStreamHeads } from '../../../shared/eventlog/reading/streamHeads.ts';
import { verifyChains } from '../../../shared/eventlog/reading/verifyChains.ts';
import {
  startEventStoreDbNode,
  type EventStoreDbNode,
} from '../../support/servers/eventstoredb-node/index.ts';
import { startTestService } from '../../support/http/service.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

let source: EventStore;
let folders: string[];
const stores: EventStore[] = [];
const nodes: EventStoreDbNode[] = [];
const never = new AbortController().signal;

async function newFolder(): Promise<string> {
  const folder = await temporaryFolder();
  folders.push(folder);
  return folder;
}

async function embedded(folder?: string): Promise<EventStore> {
  const store = await openSqliteEventStore({ folder: folder ?? (await newFolder()) });
  stores.push(store);
  return store;
}

/** On a node of its own: whatever EVENTSTOREDB_URL names may hold other events. */
async function cluster(): Promise<EventStore> {
  const node = await startEventStoreDbNode({ folder: await newFolder() });
  nodes.push(node);
  const store = await openEventStoreDb({ connectionString: node.connectionString });
  stores.push(store);
  return store;
}

async function eventsOf(store: EventStore): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  for await (const batch of store.subscribe({ batchSize: 500, signal: never })) {
    events.push(...batch.events);
    if (batch.caughtUp) break;
  }
  return events;
}

/** In their order, with the JSON parsed: positions are the store's own, and so is white space. */
const content = async (store: EventStore) =>
  (await eventsOf(store)).map(({ id, stream, revision, type, data, metadata }) => ({
    id,
    stream,
    revision,
    type,
    data: JSON.parse(data),
    metadata: JSON.parse(metadata),
  }));

const copy = (from: EventStore, to: EventStore, after?: Position, signal = never) =>
  copyEvents({ from, to, after, signal, onProgress: () => undefined });
const misfit = (store: EventStore) =>
  verifyChains({ store, after: undefined, signal: never, onProgress: () => undefined });

beforeAll(async () => {
  folders = [];
  const service = await startTestService();
  const agent = await service.createAgent({ name: 'Ünïcode 🙂' });
  const { session_id } = (await service.post(`/v1/agents/${agent}/run`, { input: 'é 🙂 "quoted"' }))
    .body.data;
  for (let turn = 0; turn < 30; turn += 1) {
    await service.post(`/v1/agents/${agent}/run`, { input: `turn ${turn}`, session_id });
    // Of another stream, in between: the transparency log has all events in their order.
    await service.createAgent();
  }
  await service.post(`/v1/sessions/${session_id}/fork`, { at_turn: 3 });
  const original = new DatabaseSync(join(service.folder, 'events.db'));
  const folder = await newFolder();
  original.exec(`VACUUM INTO '${join(folder, 'events.db')}'`);
  original.close();
  await service.close();
  source = await embedded(folder);
});
afterAll(async () => {
  for (const store of stores) await store.close();
  for (const node of nodes) await node.close();
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

test('a log copied to EventStoreDB and back is the same log, and its chains verify in both', async () => {
  const [there, back] = [await cluster(), await embedded()];
  expect(await copy(source, there)).toBe(true);
  expect(await copy(there, back)).toBe(true);
  const original = await content(source);
  expect(await content(there)).toEqual(original);
  expect(await content(back)).toEqual(original);
  expect([await misfit(there), await misfit(back)]).toEqual([undefined, undefined]);
});

test('the heads of a log are those of its copy in EventStoreDB, and a stream deleted there is missed', async () => {
  const headsOf = async (store: EventStore): Promise<SavedHead[]> => {
    const read = await readStreamHeads({ store, signal: never, onProgress: () => undefined });
    return [...read!.heads].map(([stream, head]) => ({ stream, ...head }));
  };
  async function* kept(heads: readonly SavedHead[]): AsyncGenerator<SavedHead> {
    yield* heads;
  }
  const there = await cluster();
  await copy(source, there);
  const heads = await headsOf(source);
  expect(new Set(await headsOf(there))).toEqual(new Set(heads));
  const compare = () =>
    compareHeads({ store: there, heads: kept(heads), signal: never, onProgress: () => undefined });
  expect(await compare()).toEqual({
    compared: heads.length,
    lost: { deleted: 0, cut: 0, rewritten: 0 },
    first: undefined,
  });
  const session = heads.find(({ stream }) => stream.startsWith('session-'))!;
  const client = EventStoreDBClient.connectionString(nodes.at(-1)!.connectionString);
  await client.tombstoneStream(session.stream);
  await client.dispose();
  expect(await compare()).toMatchObject({
    lost: { deleted: 1, cut: 0, rewritten: 0 },
    first: { head: session, loss: 'deleted' },
  });
});

test('a copy that is repeated writes nothing twice, and brings what came since', async () => {
  const target = await embedded();
  await copy(source, target);
  const head = await target.head();
  await copy(source, target);
  expect(await target.head()).toBe(head);
});

test('an interrupted copy goes on after the position that it had reached', async () => {
  const target = await embedded();
  const interrupt = new AbortController();
  const positions: Array<Position | undefined> = [];
  const first = await copyEvents({
    from: { ...source, subscribe: (options) => source.subscribe({ ...options, batchSize: 10 }) },
    to: target,
    after: undefined,
    signal: interrupt.signal,
    onProgress: ({ position }) => {
      positions.push(position);
      if (positions.length === 2) interrupt.abort();
    },
  });
  expect([first, (await eventsOf(target)).length]).toEqual([false, 20]);
  expect(await copy(source, target, positions.at(-1))).toBe(true);
  expect(await content(target)).toEqual(await content(source));
});

test('an event that does not fit its chain stops the copy and is named, and nothing from there on is written', async () => {
  const folder = await newFolder();
  const tampered = await openSqliteEventStore({ folder });
  await copy(source, tampered);
  await tampered.close();
  const database = new DatabaseSync(join(folder, 'events.db'));
  const victim = database
    .prepare(
      "SELECT id FROM events WHERE type = 'session.turn_completed.v1' ORDER BY position LIMIT 1",
    )
    .get() as { id: string };
  database
    .prepare("UPDATE events SET data = json_set(data, '$.duration_ms', 12345) WHERE id = ?")
    .run(victim.id);
  database.close();
  const target = await embedded();
  await expect(copy(await embedded(folder), target)).rejects.toMatchObject({
    code: 'event_invalid',
    message: expect.stringContaining(victim.id),
  });
  expect((await eventsOf(target)).map(({ id }) => id)).not.toContain(victim.id);
});

test('a target with another history is left as it is', async () => {
  const target = await embedded();
  const [first] = await eventsOf(source);
  await target.append(first!.stream, 'no_stream', [{ ...first!, id: crypto.randomUUID() }]);
  await expect(copy(source, target)).rejects.toMatchObject({ code: 'stream_conflict' });
});
