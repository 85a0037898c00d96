import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openAccount, setHold, setRetention } from '../../../../shared/accounts/commands.ts';
import type { CommandContext } from '../../../../shared/commandHandling/context.ts';
import { eraseWithReplays } from '../../../../shared/erasure/eraseWithReplays.ts';
import { createErasureFinisher } from '../../../../shared/erasure/finishErasures.ts';
import { storeUnavailableError, TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import {
  AGENT_ID,
  sessionRow,
  sessionStarted,
  turnCompleted,
  turnStarted,
} from '../../../support/builders/events.ts';
import { handleContext, writeStream } from '../../../support/stores/handleContext.ts';
import {
  eventStoreFixture,
  type SqliteEventStoreFixture,
} from '../../../support/stores/sqlite/sqliteEventStore.ts';

const actor = { account_id: 'acct_1', key_id: 'key_1', request_id: 'request_1' };
/** By session: those that replays made of it. */
const REPLAYS: Record<string, string[]> = { s: ['r1', 'r2', 'r3'], r2: ['r2a'] };

let fixture: SqliteEventStoreFixture;
let context: CommandContext;
let logged: unknown[];
beforeEach(async () => {
  logged = [];
  fixture = await eventStoreFixture();
  context = {
    ...handleContext(fixture.store(), Date.parse('2026-11-23T09:00:00.000Z')),
    readModels: { untilShown: async () => true },
    logger: { warn: (fields: object) => void logged.push(fields) },
  } as unknown as CommandContext;
  await openAccount(context, actor, 'somebody');
  const all: [string, string | undefined][] = [
    ['s', undefined],
    ['other', undefined],
    ...Object.entries(REPLAYS).flatMap(([of, replays]) =>
      replays.map((replay): [string, string] => [replay, of]),
    ),
  ];
  for (const [id, of] of all) {
    const replay = of && { replay_id: 'replay_1', session_id: of, role: 'replay' as const };
    const begun = sessionStarted(AGENT_ID, { ...(replay && { replay }) });
    await writeStream(context, actor, `session-${id}`, [begun, turnStarted(1), turnCompleted(1)]);
  }
});
afterEach(() => fixture.dispose());

/** Pages of two, without what was erased. */
async function listReplaysOf(id: string, { after = '' }: { after?: string }) {
  const left: string[] = [];
  for (const replay of REPLAYS[id] ?? [])
    if (replay > after && !(await isErased(replay))) left.push(replay);
  const rows = left.slice(0, 2).map((session_id) => sessionRow({ session_id }));
  return { rows, more: left.length > 2 };
}
async function isErased(id: string): Promise<boolean> {
  const options = { direction: 'backwards', limit: 1 } as const;
  const [last] = await context.store.readStream(`session-${id}`, options);
  return last!.type === 'session.erased.v1';
}

const NO_DEPENDENTS = {
  listForksOf: async () => ({ rows: [], more: false }),
  findNewestSessionOf: async () => undefined,
};
const REQUEST = { reason: 'request' } as const;
const begun = async (): Promise<string[]> =>
  (await context.store.keys.listErasures(10)).map(({ stream }) => stream);
const erase = (changes = {}) =>
  eraseWithReplays(
    { ...context, dependentsAt: async () => ({ ...NO_DEPENDENTS, listReplaysOf }), ...changes },
    'session-s',
    REQUEST,
    actor,
  );

test('a session is erased with those that replays made of it, and of these, and with no other', async () => {
  const told: string[] = [];
  const erased = await erase({
    onErased: ({ stream }: { stream: string }) => void told.push(stream),
  });
  expect(erased.stream).toBe('session-s');
  expect(told).toEqual(['r1', 'r2a', 'r2', 'r3'].map((id) => `session-${id}`));
  for (const id of ['s', 'r1', 'r2', 'r2a', 'r3'])
    expect([id, await isErased(id)]).toEqual([id, true]);
  expect([await isErased('other'), await begun()]).toEqual([false, []]);
});

test('as long as its replays are not to be found the erasure is left to be gone on with', async () => {
  const away = { dependentsAt: () => Promise.reject(storeUnavailableError('away')) };
  await expect(erase(away)).rejects.toMatchObject({ code: 'store_unavailable' });
  expect([await isErased('s'), await isErased('r1'), await begun()]).toEqual([
    true,
    false,
    ['session-s'],
  ]);
  expect(await erase()).toMatchObject({ again: true });
  expect([await isErased('r1'), await isErased('r2a'), await begun()]).toEqual([true, true, []]);
});

/** Whether the key of each session's texts is destroyed. */
async function areDestroyed(...ids: string[]): Promise<boolean[]> {
  const { readStream, keys } = fixture.store();
  return Promise.all(
    ids.map(async (id) => {
      const events = await readStream(`session-${id}`, { direction: 'forwards', limit: 10 });
      const keyId = /"box":"(.{16})/.exec(events.map(({ data }) => data).join(''))![1]!;
      return (await keys.examine([keyId])).get(keyId) === 'destroyed';
    }),
  );
}

test('a replay that is damaged or gone keeps neither the session nor its other replays from being erased, and is logged', async () => {
  const { store } = context;
  const damaged: typeof store = {
    ...store,
    readStream: (stream, options) =>
      stream === 'session-r2'
        ? Promise.reject(new TurnlogError('stream_damaged', 'It is damaged.'))
        : store.readStream(stream, options),
  };
  const listed = ['gone', 'r1', 'r2', 'r3'].map((session_id) => sessionRow({ session_id }));
  const none = { rows: [], more: false };
  const list = async (id: string) => (id === 's' ? { rows: listed, more: false } : none);
  await erase({
    store: damaged,
    dependentsAt: async () => ({ ...NO_DEPENDENTS, listReplaysOf: list }),
  });
  expect(await areDestroyed('s', 'r1', 'r3')).toEqual([true, true, true]);
  expect(await begun()).toEqual([]);
  expect(logged).toMatchObject([
    { stream: 'session-gone' },
    { stream: 'session-r2', code: 'stream_damaged' },
  ]);
});

test('an erasure in which a hold is set is finished once the hold has ended', async () => {
  const dependents = { ...NO_DEPENDENTS, listReplaysOf };
  const held = async () => {
    await setHold(context, actor, { held: true });
    return dependents;
  };
  await expect(erase({ dependentsAt: held })).rejects.toMatchObject({ code: 'erasure_refused' });
  let now = 0;
  const { finish, unfinished } = createErasureFinisher(
    {
      ...context,
      readModelsAt: () => Promise.reject(new Error('no account is erased')),
      dependentsAt: async () => dependents,
    },
    () => now,
  );
  async function finishLater(): Promise<unknown> {
    await finish(new AbortController().signal);
    now += 3_600_000;
    await finish(new AbortController().signal);
    return [await begun(), await areDestroyed('s', 'r1', 'r2a', 'r3'), unfinished()?.count];
  }
  const kept = [['session-s'], [false, false, false, false], 1];
  expect(await finishLater()).toEqual(kept);
  expect(await finishLater()).toEqual(kept);
  await setHold(context, actor, { held: false });
  expect(await finishLater()).toEqual([[], [true, true, true, true], undefined]);
});

test('a replay that is younger than the least time that sessions are kept goes along all the same', async () => {
  await setRetention(context, actor, { minimum_days: 10 });
  const old = Date.parse('2026-12-03T09:00:00.001Z');
  REPLAYS['s']!.push('r9');
  const clock = { now: () => old };
  context = { ...context, clock };
  const replay = { replay_id: 'replay_1', session_id: 's', role: 'replay' as const };
  await writeStream(context, actor, 'session-r9', [
    sessionStarted(AGENT_ID, { replay }),
    turnStarted(1),
  ]);
  await erase();
  expect([await isErased('s'), await isErased('r9')]).toEqual([true, true]);
  REPLAYS['s']!.pop();
});

test('a session that a row calls a replay stays unless its first event names the erased session', async () => {
  REPLAYS['s']!.push('victim');
  await writeStream(context, actor, 'session-victim', [sessionStarted(), turnStarted(1)]);
  await erase();
  expect([await isErased('r3'), await isErased('victim')]).toEqual([true, false]);
  REPLAYS['s']!.pop();
});
