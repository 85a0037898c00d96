import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openAccount, setRetention } from '../../../../shared/accounts/commands.ts';
import type { CommandContext } from '../../../../shared/commandHandling/context.ts';
import { eraseWithReplays } from '../../../../shared/erasure/eraseWithReplays.ts';
import { storeUnavailableError } from '../../../../shared/lib/errors/turnlogError.ts';
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
beforeEach(async () => {
  fixture = await eventStoreFixture();
  context = {
    ...handleContext(fixture.store(), Date.parse('2026-11-23T09:00:00.000Z')),
    readModels: { untilShown: async () => true },
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
