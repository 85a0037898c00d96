import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createErasureTarget } from '../../../../shared/erasure/readForErasure.ts';
import { recordErasure } from '../../../../shared/erasure/eraseStream.ts';
import type { KeyState } from '../../../../shared/eventlog/encryption/keyring.ts';
import type { HandleContext } from '../../../../shared/commandHandling/handle.ts';
import type { ReadOptions } from '../../../../shared/ports/eventStore.ts';
import {
  accountOpened,
  sessionDescribed,
  sessionStarted,
  turnCompleted,
  turnStarted,
} from '../../../support/builders/events.ts';
import { turnsDuring } from '../../../support/fakes/loopTurns.ts';
import { handleContext, writeStream } from '../../../support/stores/handleContext.ts';
import {
  eventStoreFixture,
  type SqliteEventStoreFixture,
} from '../../../support/stores/sqlite/sqliteEventStore.ts';

const ACTOR = { account_id: 'acct_1', key_id: 'key_1', request_id: 'request_1' };
const STREAM = 'session-session_1';
const EVENTS = 1_500;
const REQUEST = { reason: 'request' } as const;

let fixture: SqliteEventStoreFixture;
let context: HandleContext;
let read: number;
/** What the key store says of keys, in place of what it holds. */
let stateOf: ((id: string) => KeyState) | undefined;

beforeEach(async () => {
  fixture = await eventStoreFixture();
  const store = fixture.store();
  read = 0;
  stateOf = undefined;
  context = handleContext(
    {
      ...store,
      keys: {
        ...store.keys,
        examine: async (ids) =>
          stateOf ? new Map(ids.map((id) => [id, stateOf!(id)])) : store.keys.examine(ids),
      },
      async readStream(stream: string, options: ReadOptions) {
        const page = await store.readStream(stream, options);
        if (stream === STREAM) read += page.length;
        return page;
      },
    },
    Date.UTC(2026, 10, 22),
  );
  await writeStream(context, ACTOR, 'account-acct_1', [accountOpened()]);
  const described = Array.from({ length: EVENTS - 3 }, () => sessionDescribed({}, 'A title', 1));
  const turn = [turnStarted(1), turnCompleted(1)];
  await writeStream(context, ACTOR, STREAM, [sessionStarted(), ...turn, ...described]);
});
afterEach(() => fixture.dispose());

const load = () => createErasureTarget(STREAM, context.store.keys).load(context);

async function erase(): Promise<void> {
  const { key_ids } = await recordErasure(context, STREAM, REQUEST, ACTOR);
  expect(key_ids).toHaveLength(1);
  await context.store.keys.endErasure(STREAM, key_ids);
}

test('other work gets turns of the event loop while a long session is read', async () => {
  let revision: number | undefined;
  const turns = await turnsDuring(async () => {
    ({ revision } = (await load()).head);
  });
  expect(revision).toBe(EVENTS - 1);
  // 15 pages.
  expect(turns).toBeGreaterThanOrEqual(3);
});

test('an erasure that is repeated reads the session once more, and then only its end', async () => {
  await erase();
  const complete = await load();
  expect(complete.state).toMatchObject({ flaw: undefined, last: { type: 'session.erased.v1' } });
  read = 0;
  const again = await load();
  expect(read).toBe(1);
  expect(again.head).toEqual(complete.head);
  expect(again.state.last).toEqual(complete.state.last);
  expect([...again.state.keys.own]).toEqual([...complete.state.keys.own]);
  expect([again.state.keys.live.size, again.state.keys.doubtful.size]).toEqual([0, 0]);
  expect(await recordErasure(context, STREAM, REQUEST, ACTOR)).toMatchObject({
    again: true,
    key_ids: [...complete.state.keys.own],
    unread: undefined,
  });
});

test('an erased session is read again when one of its keys exists', async () => {
  const [id, key] = await keyOfSession();
  await erase();
  await load();
  // A backup of the key store brings it back.
  stateOf = () => key;
  read = 0;
  const { state } = await load();
  expect(read).toBeGreaterThan(EVENTS);
  expect([[...state.keys.own], [...state.keys.live]]).toEqual([[id], [id]]);
});

test('an erased session of which a key was not examined is read again', async () => {
  await erase();
  stateOf = () => 'locked';
  expect((await load()).state.keys.doubtful.size).toBe(1);
  stateOf = undefined;
  read = 0;
  expect((await load()).state.keys.doubtful.size).toBe(0);
  expect(read).toBeGreaterThan(EVENTS);
});

async function keyOfSession(): Promise<[string, KeyState]> {
  const { keys } = (await load()).state;
  return [...(await context.store.keys.examine([...keys.own]))][0]!;
}
