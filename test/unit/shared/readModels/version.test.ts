import { describe, expect, test } from '@jest/globals';
import { postgresVersion, schemaOf } from '../../../../infra/postgres/readModels/schema.ts';
import { readersLock } from '../../../../infra/postgres/leases/locks.ts';
import { sqliteVersion } from '../../../../infra/sqlite/readModels/schema.ts';
import { orNull, text, type Table, type Tables } from '../../../../shared/readModels/table.ts';
import { TABLES } from '../../../../shared/readModels/tables.ts';
import { PROJECTION_LOGIC, versionOf } from '../../../../shared/readModels/version.ts';

const { agents } = TABLES;
const changed = (changes: Partial<Table>): Tables => ({
  ...TABLES,
  agents: { ...agents, ...changes },
});
const { component, ...fewer } = agents.columns;

const CHANGES: [string, Tables][] = [
  ['a column more', changed({ columns: { ...agents.columns, one_more: orNull(text) } })],
  ['a column less', changed({ columns: fewer })],
  ['a column of another name', changed({ columns: { ...fewer, part: component } })],
  ['a column of another kind', changed({ columns: { ...agents.columns, deleted: text } })],
  ['a column that may be null', changed({ columns: { ...agents.columns, name: orNull(text) } })],
  ['another key', changed({ key: ['account_id', 'agent_id'] })],
  ['an index less', changed({ indexes: [] })],
  ['another storage', changed({ longRows: false, rewritten: true })],
  ['a table more', { ...TABLES, notes: agents }],
];

describe.each([
  ['SQLite', sqliteVersion],
  ['PostgreSQL', postgresVersion],
])('the version of the read models in %s', (_, versionFor) => {
  const { number } = versionFor(TABLES);

  test.each(CHANGES)('is another with %s', (_what, tables) => {
    expect(versionFor(tables).number).not.toBe(number);
  });

  test('is another with another logic of the projections, and the same with the same', () => {
    expect(versionFor(TABLES, PROJECTION_LOGIC + 1).number).not.toBe(number);
    expect(versionFor(TABLES, PROJECTION_LOGIC).number).toBe(number);
  });
});

test('the highest version fits the integers and the names of PostgreSQL', () => {
  const versions = Array.from({ length: 500 }, (_, index) => versionOf(TABLES, '', index).number);
  expect(Math.max(...versions)).toBeLessThan(2 ** 28);
  expect(Number(readersLock(2 ** 28 - 1).split(', ')[1])).toBeLessThan(2 ** 31);
  for (const role of ['live', 'first', 'building', 'retired'] as const)
    expect(schemaOf({ number: 2 ** 28 - 1 }, role).length).toBeLessThanOrEqual(63);
});
