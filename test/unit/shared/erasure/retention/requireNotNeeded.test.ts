import { expect, test } from '@jest/globals';
import {
  requireNotNeeded,
  type DependentQueries,
} from '../../../../../shared/erasure/retention/requireNotNeeded.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import type { Page } from '../../../../../shared/ports/readModels.ts';
import type { SessionRow } from '../../../../../shared/readModels/tables.ts';
import { sessionRow } from '../../../../support/builders/events.ts';

const DAY_MS = 86_400_000;
const NOW = Date.UTC(2027, 0, 1);
const minimum = { days: 10, now: async () => NOW };
const ago = (days: number): string => new Date(NOW - days * DAY_MS).toISOString();

const row = (session_id: string, days: number, changes: Partial<SessionRow> = {}) =>
  sessionRow({ session_id, updated_at: ago(days), ...changes });

function queriesOf(rows: SessionRow[]): DependentQueries {
  const list =
    (column: 'fork_of' | 'replay_of') =>
    async (id: string, { limit, after = '' }: Page) => {
      const all = rows.filter((one) => one[column] === id && one.session_id > after);
      return { rows: all.slice(0, limit), more: all.length > limit };
    };
  return {
    listForksOf: list('fork_of'),
    listReplaysOf: list('replay_of'),
    findNewestSessionOf: async (agent_id) =>
      rows
        .filter((one) => one.agent_id === agent_id)
        .toSorted((a, b) => (a.updated_at < b.updated_at ? 1 : -1))[0],
  };
}

const check = (stream: string, rows: SessionRow[]) =>
  requireNotNeeded(queriesOf(rows), stream, minimum);

test('an agent is needed until the minimum of its newest session is over', async () => {
  const rows = [
    row('session_1', 99, { agent_id: 'agent_1' }),
    row('session_2', 9, { agent_id: 'agent_1' }),
    row('session_3', 10, { agent_id: 'agent_2' }),
  ];
  await expect(check('agent-agent_1', rows)).rejects.toThrow(
    /session session_2 of this agent until 2027-01-02T00:00:00.000Z/,
  );
  await check('agent-agent_2', rows);
  await check('agent-agent_3', rows);
});

test('a session is needed by forks and replays of it, and by theirs', async () => {
  const rows = [
    row('a1', 50, { fork_of: 'a' }),
    row('a2', 50, { replay_of: 'a1' }),
    row('a3', 1, { fork_of: 'a2' }),
    row('b1', 10, { replay_of: 'b' }),
  ];
  for (const id of ['a', 'a1', 'a2'])
    await expect(check(`session-${id}`, rows)).rejects.toThrow(
      /session a3 that was forked from a2 until 2027-01-10/,
    );
  await check('session-a3', rows);
  await check('session-b', rows);
});

test('the time is not asked for where nothing needs the texts, and is one that can not be told else', async () => {
  const now = () => Promise.reject(new Error('The clock is wrong.'));
  const ask = (rows: SessionRow[]) =>
    requireNotNeeded(queriesOf(rows), 'session-a', { days: 10, now });
  await ask([]);
  await expect(ask([row('a1', 1, { fork_of: 'a' })])).rejects.toThrow('The clock is wrong.');
  const odd = row('a1', 1, { fork_of: 'a', updated_at: 'yesterday' });
  await expect(check('session-a', [odd])).rejects.toThrow(/a time that can not be told/);
});

test('more sessions than are looked at, and a circle of them, are refused', async () => {
  const many = Array.from({ length: LIMITS.retention.dependents + 1 }, (_, index) =>
    row(`a${String(index).padStart(6, '0')}`, 50, { fork_of: 'a' }),
  );
  let turns = 0;
  const counting = setInterval(() => (turns += 1), 0);
  await check('session-a', many.slice(1));
  clearInterval(counting);
  expect(turns).toBeGreaterThan(1);
  await expect(check('session-a', many)).rejects.toThrow(/More than 10000 sessions/);
  const circle = [row('a', 50, { fork_of: 'b' }), row('b', 50, { fork_of: 'a' })];
  await expect(check('session-a', circle)).rejects.toThrow(/More than 10000 sessions/);
});
