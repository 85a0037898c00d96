import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { ChatModels } from '../../../../shared/ports/chatModel.ts';
import {
  readUsage,
  type UsageEntry,
  type UsageQuestion,
} from '../../../../shared/usage/queries.ts';
import { type UsageQueries, type UsageSum } from '../../../../shared/usage/sqlQueries.ts';
import { USAGE_COLUMNS, type UsageColumn } from '../../../../shared/usage/tables.ts';

type Row = UsageSum & Record<UsageColumn, string>;

const rowOf = (
  [day, agent_id, model, kind]: readonly [string, string, string, 'run' | 'replay'],
  count: number,
): Row => ({
  day,
  agent_id,
  model,
  key_id: 'key_1',
  kind,
  code: '',
  completed: 1,
  failed: 0,
  interrupted: 0,
  prompt_tokens: count,
  completion_tokens: 0,
  total_tokens: count,
  model_calls: 1,
  tool_calls: 0,
});
const placeOf = (row: Row): string[] => USAGE_COLUMNS.map((column) => row[column]);
const isAfter = (place: readonly string[], other: readonly string[]): boolean => {
  const index = place.findIndex((value, at) => value !== other[at]);
  return index !== -1 && place[index]! > other[index]!;
};

/** Read models with these rows, each a slice of its own, and how many slices were read. */
function readModelsOf(rows: readonly Row[]) {
  const state = { slices: 0 };
  const sorted = rows.toSorted((a, b) => (isAfter(placeOf(a), placeOf(b)) ? 1 : -1));
  const sumUsage: UsageQueries['sumUsage'] = async (_account, { after, to }) => {
    state.slices += 1;
    const left = sorted.filter((row) => isAfter(placeOf(row), after) && row.day <= to);
    return { sums: left.slice(0, 1), next: left.length > 1 ? placeOf(left[0]!) : undefined };
  };
  return { sumUsage, state };
}

/** A client that stays. */
const STAYS = new AbortController().signal;

const price = { input_per_million: '1', output_per_million: '1', currency: 'EUR' };
const models = {
  find: (id: string) => (id === 'priced' ? { price } : undefined),
} as unknown as Pick<ChatModels, 'find'>;

const days = fc.constantFrom('2026-01-01', '2026-01-02', '2026-01-03', '2026-01-04');
const someRows = fc
  .uniqueArray(
    fc.tuple(
      days,
      fc.constantFrom('agent_1', 'agent_2', 'agent_3'),
      fc.constantFrom('priced', 'other'),
      fc.constantFrom<'run' | 'replay'>('run', 'replay'),
    ),
    { selector: String },
  )
  .map((keys) => keys.map((key, index) => rowOf(key, index + 1)));

/** What the rows come to, told apart by the columns. */
function summed(rows: readonly Row[], columns: readonly UsageColumn[]): Map<string, number> {
  const sums = new Map<string, number>();
  for (const row of rows) {
    const id = columns.map((column) => row[column]).join(' ');
    sums.set(id, (sums.get(id) ?? 0) + row.total_tokens);
  }
  return new Map([...sums].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

test('pages of any size lead through all entries in their order, each whole and once', async () => {
  await fc.assert(
    fc.asyncProperty(
      someRows,
      fc.subarray<UsageColumn>(['day', 'agent_id', 'model', 'kind']),
      fc.integer({ min: 1, max: 4 }),
      fc.tuple(days, days).map((two) => two.toSorted()),
      async (rows, by, limit, [from, to]) => {
        const { sumUsage } = readModelsOf(rows);
        const asked: UsageQuestion = { from: from!, to: to!, by, limit };
        const found: UsageEntry[] = [];
        for (let more = true; more;) {
          const last = found.at(-1);
          const after = last && { after: last.values };
          const source = { readModels: { sumUsage }, models };
          const page = await readUsage(source, 'acct_1', { ...asked, ...after }, STAYS);
          expect(page.rows.length).toBe(page.more ? limit : page.rows.length);
          found.push(...page.rows);
          more = page.more;
        }
        const due = rows.filter(({ day }) => day >= from! && day <= to!);
        expect(found.map(({ values, counts }) => [values.join(' '), counts.total_tokens])).toEqual([
          ...summed(due, by),
        ]);
        const unpriced = due.filter(({ model }) => model !== 'priced');
        expect(found.reduce((sum, entry) => sum + entry.unpriced_tokens, 0)).toBe(
          unpriced.reduce((sum, row) => sum + row.total_tokens, 0),
        );
      },
    ),
  );
});

test('a page by day reads no further than it has to', async () => {
  const rows = Array.from({ length: 100 }, (_, index) =>
    rowOf([`2026-01-01T${String(index).padStart(3, '0')}`, 'agent_1', 'priced', 'run'], 1),
  );
  const { sumUsage, state } = readModelsOf(rows);
  const asked = { from: '2026-01-01', to: '2026-01-02', limit: 3 };
  const source = { readModels: { sumUsage }, models };
  const page = await readUsage(source, 'acct_1', { ...asked, by: ['day'] }, STAYS);
  expect([page.rows.length, page.more, state.slices < 10]).toEqual([3, true, true]);
  await readUsage(source, 'acct_1', { ...asked, by: ['agent_id'] }, STAYS);
  expect(state.slices).toBeGreaterThan(100);
});

test('nothing more is read for a client that has left', async () => {
  const rows = ['agent_1', 'agent_2', 'agent_3'].map((agent) =>
    rowOf(['2026-01-01', agent, 'priced', 'run'], 1),
  );
  const { sumUsage, state } = readModelsOf(rows);
  const left = new AbortController();
  const leaving: UsageQueries['sumUsage'] = (...asked) => {
    left.abort(new Error('the client has left'));
    return sumUsage(...asked);
  };
  const asked: UsageQuestion = { from: '2026-01-01', to: '2026-01-01', by: [], limit: 10 };
  const source = { readModels: { sumUsage: leaving }, models };
  await expect(readUsage(source, 'acct_1', asked, left.signal)).rejects.toThrow('has left');
  expect(state.slices).toBe(1);
});

test('an entry has the cost of its priced models, and none where there is none', async () => {
  const rows = [
    rowOf(['2026-01-01', 'agent_1', 'priced', 'run'], 5),
    rowOf(['2026-01-01', 'agent_1', 'other', 'run'], 7),
    rowOf(['2026-01-01', 'agent_2', 'other', 'run'], 9),
  ];
  const { sumUsage } = readModelsOf(rows);
  const asked: UsageQuestion = {
    from: '2026-01-01',
    to: '2026-01-01',
    by: ['agent_id'],
    limit: 10,
  };
  const source = { readModels: { sumUsage }, models };
  const { rows: found } = await readUsage(source, 'acct_1', asked, STAYS);
  expect(found.map(({ cost, unpriced_tokens }) => [cost, unpriced_tokens])).toEqual([
    [{ amount: '0.000005', currency: 'EUR' }, 7],
    [undefined, 9],
  ]);
});
