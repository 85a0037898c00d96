/** Erasures that are requested again, and many at once: what they cost the key store. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openAccount } from '../../../../shared/accounts/commands.ts';
import type { HandleContext } from '../../../../shared/commandHandling/handle.ts';
import { eraseStream, recordErasure } from '../../../../shared/erasure/eraseStream.ts';
import { sessionStarted, turnCompleted, turnStarted } from '../../../support/builders/events.ts';
import { handleContext, writeStream } from '../../../support/stores/handleContext.ts';
import {
  eventStoreFixture,
  type SqliteEventStoreFixture,
} from '../../../support/stores/sqlite/sqliteEventStore.ts';

const actor = { account_id: 'acct_1', key_id: 'key_1', request_id: 'request_1' };
const STREAM = 'session-session_1';
const REQUEST = { reason: 'request' } as const;

let fixture: SqliteEventStoreFixture;
let context: HandleContext;
/** The writes to the key store, and the turn of the event loop of each. */
let writes: string[];
let turnsOfWrites: number[];
let turn: number;
let isCounting: boolean;

beforeEach(async () => {
  fixture = await eventStoreFixture();
  const store = fixture.store();
  const { keys } = store;
  [writes, turnsOfWrites, turn, isCounting] = [[], [], 0, true];
  const countTurns = (): void => {
    turn += 1;
    if (isCounting) setImmediate(countTurns);
  };
  countTurns();
  function record(write: string): void {
    writes.push(write);
    turnsOfWrites.push(turn);
  }
  const counted: typeof keys = {
    ...keys,
    beginErasure(stream, why) {
      record(`begin ${stream}`);
      return keys.beginErasure(stream, why);
    },
    endErasure(stream, ids) {
      record(`end ${stream}`);
      return keys.endErasure(stream, ids);
    },
  };
  context = handleContext({ ...store, keys: counted }, Date.UTC(2026, 10, 22));
  await openAccount(context, actor, 'somebody');
});
afterEach(async () => {
  isCounting = false;
  await fixture.dispose();
});

const startSession = (stream: string) =>
  writeStream(context, actor, stream, [sessionStarted(), turnStarted(1), turnCompleted(1)]);
const stateOf = async (id: string) => (await context.store.keys.examine([id])).get(id);
const begun = async (): Promise<string[]> =>
  (await context.store.keys.listErasures(10)).map(({ stream }) => stream);

test('a complete erasure is not noted again', async () => {
  const { key } = await startSession(STREAM);
  await eraseStream(context, STREAM, REQUEST, actor);
  expect(writes).toEqual([`begin ${STREAM}`, `end ${STREAM}`]);
  writes = [];
  expect(await eraseStream(context, STREAM, REQUEST, actor)).toMatchObject({
    again: true,
    key_ids: [key!.id],
  });
  // The key store writes nothing for an erasure that has ended.
  expect(writes).toEqual([`end ${STREAM}`]);
});

test('a recorded erasure whose key exists is noted again before the key is destroyed', async () => {
  const { key } = await startSession(STREAM);
  await recordErasure(context, STREAM, REQUEST, actor);
  // As after the key store was restored from a backup.
  await context.store.keys.endErasure(STREAM, []);
  expect(await stateOf(key!.id)).toMatchObject({ id: key!.id });
  writes = [];
  await recordErasure(context, STREAM, REQUEST, actor);
  expect([writes, await begun()]).toEqual([[`begin ${STREAM}`], [STREAM]]);
  await eraseStream(context, STREAM, REQUEST, actor);
  expect([await stateOf(key!.id), await begun()]).toEqual(['destroyed', []]);
});

test('a repeated request removes the note of an erasure that ended with its keys only', async () => {
  const { key } = await startSession(STREAM);
  await eraseStream(context, STREAM, REQUEST, actor);
  await context.store.keys.beginErasure(STREAM, 'why');
  await eraseStream(context, STREAM, REQUEST, actor);
  expect([await stateOf(key!.id), await begun()]).toEqual(['destroyed', []]);
});

test('a stream that can not be read is noted all the same, to be erased later', async () => {
  await startSession(STREAM);
  const { readStream } = context.store;
  const store: HandleContext['store'] = {
    ...context.store,
    readStream: (stream, options) =>
      stream === STREAM ? Promise.reject(new Error('away')) : readStream(stream, options),
  };
  await expect(eraseStream({ ...context, store }, STREAM, REQUEST, actor)).rejects.toThrow('away');
  expect(await begun()).toEqual([STREAM]);
});

test('of many erasures at once each writes to the key store in turns of the event loop of its own', async () => {
  const streams = Array.from({ length: 8 }, (_, index) => `session-session_${index}`);
  for (const stream of streams) await startSession(stream);
  [writes, turnsOfWrites] = [[], []];
  await Promise.all(streams.map((stream) => eraseStream(context, stream, REQUEST, actor)));
  expect(writes).toHaveLength(16);
  expect(new Set(turnsOfWrites).size).toBe(16);
});
