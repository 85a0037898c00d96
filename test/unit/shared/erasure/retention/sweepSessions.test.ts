import { expect, test } from '@jest/globals';
import type { ConfirmationRule } from '../../../../../shared/erasure/retention/selectAccounts.ts';
import { sweepSessions } from '../../../../../shared/erasure/retention/sweepSessions.ts';
import {
  storeUnavailableError,
  TurnlogError,
} from '../../../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import type { ReadModels } from '../../../../../shared/ports/readModels.ts';
import type { AccountRow, SessionRow } from '../../../../../shared/readModels/tables.ts';
import { sessionRow } from '../../../../support/builders/events.ts';

const DAY_MS = 86_400_000;
const NOW = Date.UTC(2027, 0, 1);
const ago = (days: number): string => new Date(NOW - days * DAY_MS).toISOString();

const account = (changes: Partial<AccountRow> = {}): AccountRow => ({
  account_id: 'acct_1',
  name: 'Acme',
  opened_at: ago(1_000),
  limits: {},
  retention: { maximum_days: 30 },
  hold: { held: false },
  erased: false,
  revision: 1,
  ...changes,
});

/** Read models of these rows, and an eraser that takes sessions out of them. */
function setUp(accounts: AccountRow[], sessions: SessionRow[], confirmation?: ConfirmationRule) {
  const rows = sessions.toSorted((a, b) => (a.session_id < b.session_id ? 1 : -1));
  const erased: string[] = [];
  const pages: number[] = [];
  const lines: object[] = [];
  const failures = new Map<string, Error>();
  const readModels: Pick<ReadModels, 'listAccounts' | 'listSessions'> = {
    listAccounts: async () => accounts,
    async listSessions(accountId, { limit, after }) {
      const gone = new Set(erased);
      const all = rows.filter(
        ({ account_id, session_id }) =>
          account_id === accountId &&
          (after === undefined || session_id < after) &&
          !gone.has(session_id),
      );
      const page = all.slice(0, limit);
      pages.push(page.length);
      return { rows: page, more: all.length > page.length };
    },
  };
  const stop = new AbortController();
  const unerasable = new Set<string>();
  const note = (fields: object): void => void lines.push(fields);
  const sweep = (now = NOW) =>
    sweepSessions({
      readModels,
      ...(confirmation && { confirmation }),
      unerasable,
      async erase({ session_id }) {
        const failure = failures.get(session_id);
        if (failure) throw failure;
        erased.push(session_id);
      },
      logger: { info: note, warn: note } as never,
      now,
      signal: stop.signal,
    });
  return { sweep, erased, pages, lines, failures, stop };
}

const session = (id: string, updated_at: string, changes: Partial<SessionRow> = {}): SessionRow =>
  sessionRow({ session_id: `session_${id}`, updated_at, ...changes });

test('erases what is past the maximum of its own account, and nothing else', async () => {
  const { sweep, erased, lines } = setUp(
    [account(), account({ account_id: 'acct_2', retention: { minimum_days: 9 } })],
    [
      session('old', ago(31)),
      session('at', ago(30)),
      session('young', ago(1)),
      session('future', ago(-400)),
      session('odd', 'no time'),
      session('others', ago(900), { account_id: 'acct_2' }),
    ],
  );
  expect(await sweep()).toEqual({ erased: 1, due: 0, held: 0, failed: 0 });
  expect(erased).toEqual(['session_old']);
  expect(lines).toEqual([{ account_id: 'acct_1', erased: 1, failed: 0 }]);
});

test('a held account keeps what is due, and that is told', async () => {
  const { sweep, erased } = setUp(
    [account({ hold: { held: true } })],
    [session('a', ago(31)), session('b', ago(99))],
  );
  expect(await sweep()).toEqual({ erased: 0, due: 2, held: 2, failed: 0 });
  expect(erased).toEqual([]);
});

test('one that can not be erased keeps no other from it, is told, and is tried again', async () => {
  const { sweep, erased, failures } = setUp(
    [account()],
    [session('a', ago(31)), session('b', ago(31)), session('c', ago(31))],
  );
  failures.set('session_b', new TurnlogError('stream_damaged', 'It is damaged.'));
  expect(await sweep()).toEqual({
    erased: 2,
    due: 1,
    held: 0,
    failed: 1,
    reason: 'session_b: It is damaged.',
  });
  failures.clear();
  expect(await sweep()).toEqual({ erased: 1, due: 0, held: 0, failed: 0 });
  expect(erased).toEqual(['session_c', 'session_a', 'session_b']);
});

test('one that went on meanwhile, or was held, is no failure', async () => {
  const { sweep, failures } = setUp([account()], [session('a', ago(31))]);
  failures.set('session_a', new TurnlogError('erasure_refused', 'It is not past.'));
  expect(await sweep()).toEqual({ erased: 0, due: 0, held: 0, failed: 0 });
});

test('a session that says it is older than its account is not erased: its clock was wrong', async () => {
  const { sweep, erased } = setUp(
    [account({ opened_at: ago(40) })],
    [session('a', '1970-01-01T00:00:00.000Z'), session('b', ago(40.5))],
  );
  expect(await sweep()).toMatchObject({ erased: 1, due: 1, failed: 1 });
  expect(erased).toEqual(['session_b']);
});

test('reads pages, and erases no more than one sweep may; the next goes on', async () => {
  const count = LIMITS.retention.sessionsOfSweep + 1;
  const many = Array.from({ length: count }, (_, index) =>
    session(String(index).padStart(6, '0'), ago(31)),
  );
  const { sweep, erased, pages } = setUp([account()], many);
  expect(await sweep()).toEqual({
    erased: LIMITS.retention.sessionsOfSweep,
    due: 1,
    held: 0,
    failed: 0,
  });
  expect(Math.max(...pages)).toBe(LIMITS.retention.pageEntries);
  expect(await sweep()).toMatchObject({ erased: 1, due: 0 });
  expect(new Set(erased).size).toBe(count);
});

test('accounts take turns, page by page: one that has more than a sweep may erase keeps no other back', async () => {
  const many = (whose: string, count: number) =>
    Array.from({ length: count }, (_, index) =>
      session(`${whose}${String(index).padStart(6, '0')}`, ago(31), { account_id: whose }),
    );
  const { sessionsOfSweep, pageEntries } = LIMITS.retention;
  const [big, small] = [many('big', sessionsOfSweep + 1), many('small', pageEntries + 1)];
  const { sweep, erased } = setUp(
    [account({ account_id: 'big' }), account({ account_id: 'small' })],
    [...big, ...small],
  );
  expect(await sweep()).toMatchObject({
    erased: sessionsOfSweep,
    due: 1 + small.length,
  });
  expect(erased.filter((id) => id.includes('small'))).toHaveLength(small.length);
});

test('with more accounts than one sweep can serve another one is the first in each hour', async () => {
  const firsts = new Set<string>();
  for (const hour of [0, 1, 2]) {
    const names = ['acct_1', 'acct_2', 'acct_3'];
    const { sweep, erased } = setUp(
      names.map((account_id) => account({ account_id })),
      names.map((account_id) => session(account_id, ago(31), { account_id })),
    );
    await sweep(NOW + hour * 3_600_000);
    firsts.add(erased[0]!);
  }
  expect(firsts.size).toBe(3);
});

test('a store that is away ends the sweep at once, and so do ten failures in a row', async () => {
  const many = Array.from({ length: 20 }, (_, index) => session(String(index), ago(31)));
  const away = setUp([account()], many);
  for (const { session_id } of many) away.failures.set(session_id, storeUnavailableError('away'));
  await expect(away.sweep()).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(away.lines).toEqual([]);
  const failing = setUp([account()], many);
  for (const { session_id } of many) failing.failures.set(session_id, new Error('no'));
  await expect(failing.sweep()).rejects.toThrow('no');
  expect(failing.lines).toHaveLength(10);
});

test('what is wrong with single sessions or accounts, however often, keeps no other session', async () => {
  const many = Array.from({ length: 40 }, (_, index) => session(`x${index}`, ago(31)));
  const { sweep, erased, failures, lines } = setUp([account()], [session('a', ago(31)), ...many]);
  const damaged = new TurnlogError('stream_damaged', 'It is damaged.');
  for (const { session_id } of many) failures.set(session_id, damaged);
  expect(await sweep()).toMatchObject({ erased: 1, due: 40, failed: 40 });
  expect(erased).toEqual(['session_a']);
  expect(lines).toHaveLength(11);
});

test('a process that stops ends the sweep between two sessions', async () => {
  const { sweep, stop, erased } = setUp([account()], [session('a', ago(31))]);
  stop.abort(new Error('stopping'));
  await expect(sweep()).rejects.toThrow('stopping');
  expect(erased).toEqual([]);
});

/** The names of one session more than a sweep erases without asking. */
const OVERDUE = Array.from({ length: LIMITS.retention.overdueSessions + 1 }, (_, index) =>
  String.fromCodePoint(97 + index),
);
const ASKING: ConfirmationRule = { percent: 20, confirmedBefore: async () => -Infinity };

test('sessions that an earlier sweep could not erase make no later one ask', async () => {
  const rows = OVERDUE.map((id) => session(id, ago(30.5)));
  const { sweep, erased, failures } = setUp([account()], rows, ASKING);
  for (const { session_id } of rows.slice(1))
    failures.set(session_id, new TurnlogError('erasure_refused', 'A fork needs it.'));
  failures.set('session_a', new TurnlogError('stream_damaged', 'It is damaged.'));
  expect(await sweep()).toMatchObject({ erased: 0, failed: 1 });
  failures.delete('session_b');
  const later = await sweep(NOW + 3 * DAY_MS);
  expect(later).toMatchObject({ erased: 1, due: 1, failed: 1 });
  expect(later).not.toHaveProperty('isConfirmed');
  expect(erased).toEqual(['session_b']);
});

test('sessions that say they are older than their account make no sweep ask', async () => {
  const rows = OVERDUE.map((id) => session(id, '1970-01-01T00:00:00.000Z'));
  const other = session('other', ago(40));
  const { sweep, erased } = setUp([account()], [...rows, other], ASKING);
  expect(await sweep()).toMatchObject({ erased: 1, failed: rows.length });
  expect(erased).toEqual(['session_other']);
});

test('asks before it erases many, and goes on with other accounts', async () => {
  const old = OVERDUE.map((id) => session(id, ago(40)));
  const other = session('other', ago(31), { account_id: 'acct_2' });
  const { sweep, erased } = setUp(
    [account(), account({ account_id: 'acct_2' })],
    [...old, other],
    ASKING,
  );
  expect(await sweep()).toMatchObject({
    erased: 1,
    due: OVERDUE.length,
    failed: 0,
    reason: expect.stringMatching(/^11 of the 11 sessions of acct_1 are past/),
    isConfirmed: expect.any(Function),
  });
  expect(erased).toEqual(['session_other']);
});
