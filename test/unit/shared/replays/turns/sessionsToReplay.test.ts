import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { LIMITS } from '../../../../../shared/limits.ts';
import type { Page } from '../../../../../shared/readModels/page.ts';
import { findSessionsToReplay } from '../../../../../shared/replays/turns/sessionsToReplay.ts';
import { sessionRow } from '../../../../support/builders/events.ts';

const { sessions: most } = LIMITS.replays;
const NAMED = 100;

/** The turns of the event loop that have passed, and the rows that were read in each. */
let loopTurn: number;
let read: Map<number, number>;
let counting: NodeJS.Immediate;
beforeEach(() => {
  loopTurn = 0;
  read = new Map();
  const count = (): void => {
    loopTurn += 1;
    counting = setImmediate(count);
  };
  counting = setImmediate(count);
});
afterEach(() => clearImmediate(counting));

const note = (rows: number): void => void read.set(loopTurn, (read.get(loopTurn) ?? 0) + rows);
const idOf = (nth: number): string => `session_${10_000 + nth}`;

/** An account with so many sessions, whose queries take no time, as those of SQLite. */
const accountWith = (sessions: number) =>
  ({
    readModels: {
      async findSession(session_id: string) {
        note(1);
        return sessionRow({ session_id, turns: 1 });
      },
      async listSessionRevisions(_: string, { after, limit }: Page) {
        const first = after === undefined ? 0 : Number(after.slice('session_'.length)) - 9_999;
        const rows = Array.from({ length: Math.min(limit, sessions - first) }, (__, nth) =>
          sessionRow({ session_id: idOf(first + nth), turns: 1 }),
        );
        note(rows.length);
        return { rows, more: first + rows.length < sessions };
      },
    },
  }) as never;

const rowsRead = (): number => [...read.values()].reduce((sum, rows) => sum + rows, 0);

test('sessions are found page by page, each in a step of its own', async () => {
  const found = await findSessionsToReplay(accountWith(most), 'acct_1', {});
  expect(found).toHaveLength(most);
  expect(new Set(found.map(({ session_id }) => session_id)).size).toBe(most);
  expect(Math.max(...read.values())).toBeLessThanOrEqual(128);
});

test('no more sessions are read than show that there are too many', async () => {
  await expect(
    findSessionsToReplay(accountWith(10 * most), 'acct_1', { filter: {} }),
  ).rejects.toMatchObject({ code: 'invalid_request' });
  expect(rowsRead()).toBe(most + 1);
});

test('named sessions are read a few in a step', async () => {
  const sessions = Array.from({ length: NAMED }, (_, nth) => idOf(nth));
  const found = await findSessionsToReplay(accountWith(0), 'acct_1', { sessions });
  expect(found.map(({ session_id }) => session_id)).toEqual(sessions);
  expect(rowsRead()).toBe(NAMED);
  expect(Math.max(...read.values())).toBeLessThanOrEqual(16);
});

test.each([
  ['listed', undefined, 128],
  ['named', Array.from({ length: NAMED }, (_, nth) => idOf(nth)), 16],
])('no more %s sessions are read once the client has left', async (_, sessions, inOneStep) => {
  const signal = AbortSignal.abort(new Error('left'));
  const selection = { sessions, signal };
  await expect(findSessionsToReplay(accountWith(most), 'acct_1', selection)).rejects.toThrow(
    'left',
  );
  expect(rowsRead()).toBe(inOneStep);
});
