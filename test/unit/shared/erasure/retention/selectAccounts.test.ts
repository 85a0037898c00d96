import { expect, test } from '@jest/globals';
import { selectAccounts } from '../../../../../shared/erasure/retention/selectAccounts.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import type { AccountRow, SessionRow } from '../../../../../shared/readModels/tables.ts';
import { sessionRow } from '../../../../support/builders/events.ts';

const DAY_MS = 86_400_000;
/** Sessions that were last active before this are due. */
const BEFORE = Date.UTC(2027, 0, 1);
const FEW = LIMITS.retention.unconfirmedSessions;
const FLOOR = LIMITS.retention.overdueSessions;

/** The numbers of sessions by the days since when they are due; young ones are not due. */
interface Sessions {
  [days: number]: number;
  young?: number;
}

const rowsOf = (account_id: string, { young = 0, ...due }: Sessions): SessionRow[] =>
  [...Object.entries(due), ['-5', young] as const].flatMap(([days, count]) =>
    Array.from({ length: count }, (_, index) =>
      sessionRow({
        account_id,
        session_id: `session_${days}_${index}`,
        updated_at: new Date(BEFORE - Number(days) * DAY_MS - 1).toISOString(),
      }),
    ),
  );

interface World {
  confirmed?: Record<string, number>;
  held?: string;
  percent?: number;
  unerasable?: string[];
}

/** Asks for accounts with these sessions, in pages of 50. Resolves with those that may begin. */
async function ask(
  all: Record<string, Sessions>,
  { confirmed = {}, held, percent = 20, unerasable = [] }: World = {},
) {
  const { selected, ...asked } = await selectAccounts(
    Object.keys(all).map((account_id) => ({
      account: { account_id, hold: { held: account_id === held } } as AccountRow,
      before: BEFORE,
    })),
    {
      percent,
      confirmedBefore: async (account_id) => confirmed[account_id] ?? -Infinity,
      async listPage(account_id, after) {
        const rows = rowsOf(account_id, all[account_id]!);
        const from = rows.findIndex(({ session_id }) => session_id === after) + 1;
        return { rows: rows.slice(from, from + 50), more: rows.length > from + 50 };
      },
      isUnerasable: ({ session_id }) => unerasable.includes(session_id),
      signal: new AbortController().signal,
    },
  );
  return { selected: selected.map(({ account }) => account.account_id), ...asked };
}

test('asks where more than the share and more than a hundred sessions are due', async () => {
  expect(await ask({ a: { 0: FEW } })).toEqual({ selected: ['a'], due: 0 });
  expect(await ask({ a: { 0: 200, young: 800 } })).toMatchObject({ selected: ['a'] });
  const asked = await ask({ a: { 0: 201, young: 799 }, b: { 0: 1 } });
  expect(asked).toMatchObject({ selected: ['b'], due: 201 });
  expect(asked.reason).toBe(
    '201 of the 1000 sessions of a are past their maximum at once, and retention erases nothing of them until an operator confirms it. Check the clock and the maximum, then: npm run cli -- retention confirm a --reason <text>.',
  );
});

test('asks about fewer where a clock or a maximum made them due more than a day ago', async () => {
  expect(await ask({ a: { 0: 50, young: 50 } })).toMatchObject({ selected: ['a'] });
  expect(await ask({ a: { 2: 20, young: 80 } })).toMatchObject({ selected: ['a'] });
  expect(await ask({ a: { 2: 21, young: 79 } })).toMatchObject({ selected: [], due: 21 });
});

test('erases a few sessions that are overdue after a stop, whatever their share', async () => {
  expect(await ask({ a: { 2: 1, young: 3 } })).toEqual({ selected: ['a'], due: 0 });
  expect(await ask({ a: { 2: FLOOR } })).toEqual({ selected: ['a'], due: 0 });
  expect(await ask({ a: { 2: FLOOR + 1 } })).toMatchObject({ selected: [], due: FLOOR + 1 });
  expect(await ask({ a: { 2: FLOOR }, b: { 2: 1 } })).toMatchObject({ selected: [] });
});

test('does not count sessions that can not be erased as overdue', async () => {
  const all = { a: { 2: FLOOR + 1 } };
  expect(await ask(all, { unerasable: ['session_2_0'] })).toEqual({ selected: ['a'], due: 0 });
  expect(await ask(all, { unerasable: ['session_3_0'] })).toMatchObject({ selected: [] });
});

test('asks where the sessions of several accounts are many together', async () => {
  const small = { 0: 4 };
  const names = Array.from({ length: 26 }, (_, index) => `acct_${index}`);
  const all = Object.fromEntries(names.map((name) => [name, small]));
  const asked = await ask({ ...all, idle: { young: 300 } });
  expect(asked).toMatchObject({ selected: [], due: 104 });
  expect(asked.reason).toMatch(
    /^104 of the 104 sessions of 26 accounts, such as acct_0, are past .* confirm <account>\|all /,
  );
  expect((await ask({ ...all, idle: { young: 500 } })).selected).toEqual(names);
  const confirmed = Object.fromEntries(names.slice(1).map((name) => [name, BEFORE]));
  expect((await ask(all, { confirmed })).selected).toEqual(names);
});

test('does not ask again about what is confirmed, and says when something is', async () => {
  const confirmed: Record<string, number> = {};
  const all = { a: { 2: 12 }, b: { 3: 12 }, c: { 2: 12 } };
  const { isConfirmed, reason } = await ask(all, { confirmed });
  expect(reason).toMatch(/^36 of the 36 sessions of 3 accounts/);
  expect(await isConfirmed!()).toBe(false);
  confirmed['b'] = BEFORE - 2.5 * DAY_MS;
  expect(await isConfirmed!()).toBe(true);
  expect(await ask(all, { confirmed })).toMatchObject({ selected: ['b'], due: 24 });
  // It covers no session that becomes due later.
  const later = { b: { 2: 12, 3: 12 } };
  expect(await ask(later, { confirmed })).toMatchObject({ selected: [], due: 24 });
});

test('asks about no account on hold, and never with a share of 100 percent', async () => {
  expect(await ask({ a: { 2: 500 } }, { held: 'a' })).toEqual({ selected: ['a'], due: 0 });
  expect(await ask({ a: { 2: 500 } }, { percent: 100 })).toEqual({ selected: ['a'], due: 0 });
});
