import { rm } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, afterEach, beforeAll, beforeEach, expect, jest, test } from '@jest/globals';
import { openGenerationFile } from '../../../infra/sqlite/readModels/generationFile.ts';
import { generationFile } from '../../../infra/sqlite/readModels/generations.ts';
import { openSqliteProjectionStore } from '../../../infra/sqlite/readModels/projectionStore.ts';
import { openSqliteReadModels } from '../../../infra/sqlite/readModels/readModels.ts';
import { VERSION } from '../../../infra/sqlite/readModels/schema.ts';
import { rowEncoder, rowStatements } from '../../../infra/sqlite/readModels/statements.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import type { ReadModelQueries, ReadModels } from '../../../shared/ports/readModels.ts';
import { createProgressChannel } from '../../../shared/projections/progress.ts';
import { TABLES } from '../../../shared/readModels/tables.ts';
import { keyBeforeDay } from '../../../shared/usage/sqlQueries.ts';
import { OUTCOMES } from '../../../shared/sessions/turns/outcomes.ts';
import { sessionRow } from '../../support/builders/events.ts';
import { sessionFilters } from '../../support/builders/sessionFilters.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

/** More than the first slice of a list, so that the plans of later ones are seen too. */
const SESSIONS = 1_100;
/** More than the first slice, but fewer than a list looks for another index to avoid. */
const REPLAYED = 900;
const PAGE = { limit: 3, bytes: 1_000 };

let folder: string;
let readModels: ReadModels;
let seen: Set<string>;

beforeAll(async () => {
  folder = await temporaryFolder();
  const file = generationFile(folder, 1);
  const database = openGenerationFile({ folder, file, exclusive: false, version: VERSION });
  const save = database.prepare(rowStatements('sessions', TABLES.sessions).save);
  const encode = rowEncoder(TABLES.sessions);
  database.exec('BEGIN');
  for (let nth = 0; nth < SESSIONS; nth += 1) {
    const row = sessionRow({ session_id: `session_${10_000 + nth}`, account_id: 'acct_1' });
    save.run(...encode(row));
  }
  for (let nth = 0; nth < REPLAYED; nth += 1) {
    const session_id = `session_${10_000 + nth}_replayed`;
    const replayed = { agent_id: 'agent_2', replay_id: 'replay_1', turns_failed: 1 };
    save.run(...encode(sessionRow({ session_id, account_id: 'acct_1', ...replayed })));
  }
  database.exec("INSERT INTO checkpoint (only_row, position) VALUES (1, '1'); COMMIT");
  database.close();
});
afterAll(() => rm(folder, { recursive: true }));

beforeEach(() => {
  seen = new Set();
  const { prepare } = DatabaseSync.prototype;
  jest.spyOn(DatabaseSync.prototype, 'prepare').mockImplementation(function (
    this: DatabaseSync,
    ...[sql, options]
  ) {
    seen.add(sql);
    return prepare.call(this, sql, options);
  });
  const progress = createProgressChannel();
  readModels = openSqliteReadModels({ folder, progress });
  const position = '1' as Position;
  progress.publish({
    generation: 1,
    position,
    caughtUp: true,
    keepsKnownRows: false,
    percent: 100,
  });
});
afterEach(async () => {
  jest.restoreAllMocks();
  await readModels.close();
});

/** Tables of one row, and the first rows of a table in the order of its key. */
const ONE_ROW = /FROM (checkpoint|indexed)|FROM \w+ ORDER BY \w+ LIMIT \?$/;

/** Steps that read few rows: running replays, enabled webhooks up to a limit, and a slice of usage. */
const FEW_ROWS =
  /^SCAN (replays|webhooks) USING INDEX .* LIMIT \?$|^USE TEMP B-TREE FOR GROUP BY: .* FROM usage WHERE/;

/** The steps of the seen statements that read all rows of a table or sort what they have found. */
function unboundedSteps(): string[] {
  const database = new DatabaseSync(generationFile(folder, 1), { readOnly: true });
  database.function('generation', { deterministic: true }, () => 1);
  const steps = [...seen]
    .filter((sql) => sql.startsWith('SELECT') && !ONE_ROW.test(sql))
    .flatMap((sql) =>
      database
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all()
        .map(({ detail }) => String(detail))
        .filter((step) => /^SCAN (?!CONSTANT|entry|found|given)|TEMP B-TREE/.test(step))
        // A list that sorts has few rows: those of an index with few entries.
        .filter((step) => !(sql.includes(') AS entry') && step.includes('ORDER BY')))
        .map((step) => `${step}: ${sql}`)
        .filter((step) => !FEW_ROWS.test(step)),
    );
  database.close();
  return steps;
}

test.each(sessionFilters())('the list of sessions by %s follows an index', async (_, filter) => {
  for (const order of ['newest', 'oldest'] as const)
    for (const after of [undefined, 'session_10500']) {
      const page = { ...PAGE, order, ...(after !== undefined && { after }) };
      await readModels.listSessions('acct_1', { ...page, ...filter });
    }
  expect(seen.size).toBeGreaterThan(2);
  expect(unboundedSteps()).toEqual([]);
});

/** The definitions of the indexes that the seen statements follow through a table. */
function indexesOf(table: 'sessions' | 'replay_turns'): string[] {
  const database = new DatabaseSync(generationFile(folder, 1), { readOnly: true });
  database.function('generation', { deterministic: true }, () => 1);
  const definition = database.prepare('SELECT sql FROM sqlite_schema WHERE name = ?');
  const indexes = [...seen]
    .filter((sql) => sql.includes(`FROM ${table}`))
    .flatMap((sql) => database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all())
    .filter(({ detail }) => /^(?:SEARCH|SCAN) (\w+)/.exec(String(detail))?.[1] === table)
    .map(({ detail }) => /USING (?:COVERING )?INDEX (\w+)/.exec(String(detail))?.[1] ?? '')
    .map((name) => String(definition.get(name)?.['sql']));
  database.close();
  return indexes;
}

test.each(OUTCOMES)(
  'the list of sessions with %s turns reads an index of these',
  async (outcome) => {
    await readModels.listSessions('acct_1', { ...PAGE, outcome });
    expect(indexesOf('sessions')).toContainEqual(expect.stringContaining(`turns_${outcome} > 0`));
  },
);

test.each([
  ['an agent', { agent_id: 'agent_1' }, '(account_id, agent_id, session_id)'],
  ['a replay', { replay_id: 'replay_1', outcome: 'failed' }, '(account_id, replay_id, session_id)'],
] as const)('each slice of the list of sessions of %s reads only these', async (_, filter, on) => {
  for (const after of [undefined, 'session_10500'])
    await readModels.listSessions('acct_1', { ...PAGE, ...filter, ...(after && { after }) });
  expect([...new Set(indexesOf('sessions'))]).toEqual([expect.stringContaining(on)]);
});

test('the list of sessions without a filter reads an index of those that no replay made', async () => {
  for (const order of ['newest', 'oldest'] as const)
    for (const after of [undefined, 'session_10500'])
      await readModels.listSessions('acct_1', { ...PAGE, order, ...(after && { after }) });
  const listed = expect.stringContaining("WHERE status <> 'erased' AND replay_id IS NULL");
  expect(indexesOf('sessions')).toEqual([listed, listed, listed, listed]);
});

test.each([
  ['a replay made of another', 'listReplaysOf', 'replay_of'],
  ['were forked from another', 'listForksOf', 'fork_of'],
] as const)('the sessions that %s are read from an index without erased ones', async (...of) => {
  const [, query, column] = of;
  for (const after of [undefined, 'session_10500'])
    await readModels[query]('session_10000', { ...PAGE, ...(after && { after }) });
  const those = expect.stringContaining(
    `(${column}, session_id) WHERE ${column} IS NOT NULL AND status <> 'erased'`,
  );
  expect(indexesOf('sessions')).toEqual([those, those]);
});

test.each([
  ['changed', '(replay_id, outcome, entry)'],
  ['checks_failed', '(replay_id, entry) WHERE failed_checks > 0'],
] as const)(
  'the turns of a replay that are %s are read from an index of these',
  async (only, on) => {
    for (const session_id of [undefined, 'session_1'])
      for (const after of [undefined, 'session_1.0']) {
        const filter = { only, ...(session_id && { session_id }) };
        await readModels.listReplayTurns('replay_1', {
          ...PAGE,
          ...filter,
          ...(after && { after }),
        });
      }
    const those = expect.stringContaining(on);
    expect(indexesOf('replay_turns')).toEqual([those, those, those, those]);
  },
);

test('turns to index are looked for in an index that has no erased sessions', async () => {
  const store = await openSqliteProjectionStore({ folder });
  await store.unindexedOfAccounts('');
  await store.close();
  await readModels.hasUnindexed('acct_1', '2026-01-01', '1' as Position);
  const database = new DatabaseSync(generationFile(folder, 1), { readOnly: true });
  const steps = [...seen]
    .filter((sql) => sql.startsWith('SELECT') && sql.includes('FROM sessions '))
    .flatMap((sql) => database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all())
    .flatMap(
      ({ detail }) =>
        /^(?:SEARCH|SCAN) sessions (?!USING PRIMARY KEY).*/.exec(String(detail)) ?? [],
    );
  const [, definition] = database
    .prepare("SELECT sql FROM sqlite_schema WHERE name = 'sessions_10'")
    .get()!
    ['sql']!.toString()
    .split(' WHERE ');
  database.close();
  expect(definition).toBe("status <> 'erased'");
  const changed = '(account_id=? AND updated_at>?)';
  expect(steps.toSorted()).toEqual([
    `SEARCH sessions USING COVERING INDEX sessions_10 ${changed}`,
    `SEARCH sessions USING COVERING INDEX sessions_10 ${changed}`,
    'SEARCH sessions USING COVERING INDEX sessions_10 (account_id>?)',
    // Of at most LIMITS.search.changedSessions, the number of turns is read.
    `SEARCH sessions USING INDEX sessions_10 ${changed}`,
  ]);
});

const from = keyBeforeDay('2026-01-01');
const QUERIES: [name: keyof ReadModelQueries, (read: ReadModels) => Promise<unknown>[]][] = [
  ['findAccount', (read) => [read.findAccount('acct_1')]],
  ['findApiKey', (read) => [read.findApiKey('key_1')]],
  ['findApiKeyByHash', (read) => [read.findApiKeyByHash('hash')]],
  [
    'listApiKeys',
    (read) => [
      read.listApiKeys('acct_1', PAGE),
      read.listApiKeys('acct_1', { ...PAGE, after: 'key_1', activeAt: '2026-01-01' }),
    ],
  ],
  ['findAgent', (read) => [read.findAgent('agent_1')]],
  [
    'listAgents',
    (read) => [
      read.listAgents('acct_1', PAGE),
      read.listAgents('acct_1', { ...PAGE, after: 'agent_1' }),
      read.listAgents('acct_1', { ...PAGE, deleted: true }),
      read.listAgents('acct_1', { ...PAGE, after: 'agent_1', deleted: true }),
    ],
  ],
  ['agentListVersion', (read) => [read.agentListVersion('acct_1')]],
  ['findSession', (read) => [read.findSession('session_10000')]],
  [
    'findTranscript',
    (read) => [
      read.findTranscript('acct_1', 'session_10000', PAGE),
      read.findTranscript('acct_1', 'session_10000', { ...PAGE, after: 1 }),
    ],
  ],
  [
    'listReplaysOf',
    (read) => [
      read.listReplaysOf('session_10000', PAGE),
      read.listReplaysOf('session_10000', { ...PAGE, after: 'session_1' }),
    ],
  ],
  [
    'listForksOf',
    (read) => [
      read.listForksOf('session_10000', PAGE),
      read.listForksOf('session_10000', { ...PAGE, after: 'session_1' }),
    ],
  ],
  [
    'listSessionRevisions',
    (read) => [
      read.listSessionRevisions('acct_1', PAGE),
      read.listSessionRevisions('acct_1', { ...PAGE, after: 'session_10500' }),
      read.listSessionRevisions('acct_1', { ...PAGE, agent_id: 'agent_1' }),
    ],
  ],
  ['findNewestSessionOf', (read) => [read.findNewestSessionOf('agent_1')]],
  ['indexProgress', (read) => [read.indexProgress()]],
  ['hasUnindexed', (read) => [read.hasUnindexed('acct_1', '2026-01-01', '1' as Position)]],
  ['findStorage', (read) => [read.findStorage('acct_1', '2026-01-01')]],
  ['countUnindexed', (read) => [read.countUnindexed()]],
  [
    'sumUsage',
    (read) => [
      read.sumUsage('acct_1', { after: from, to: '2026-02-01', by: ['day'], limit: 10 }),
      read.sumUsage('acct_1', { after: from, to: '2026-02-01', by: ['model', 'code'], limit: 10 }),
    ],
  ],
  ['findWebhook', (read) => [read.findWebhook('webhook_1')]],
  [
    'listWebhooks',
    (read) => [
      read.listWebhooks('acct_1', PAGE),
      read.listWebhooks('acct_1', { ...PAGE, after: 'webhook_1' }),
      read.listWebhooks('acct_1', { ...PAGE, deleted: true }),
      read.listWebhooks('acct_1', { ...PAGE, after: 'webhook_1', deleted: true }),
    ],
  ],
  ['listEnabledWebhooks', (read) => [read.listEnabledWebhooks('', 10)]],
  ['findReplay', (read) => [read.findReplay('replay_1')]],
  ['findReplaySettings', (read) => [read.findReplaySettings('replay_1')]],
  ['listRunningReplays', (read) => [read.listRunningReplays(9), read.listRunningReplays(9, 'a')]],
  [
    'listReplays',
    (read) => [
      read.listReplays('acct_1', PAGE),
      read.listReplays('acct_1', { ...PAGE, after: 'replay_1' }),
    ],
  ],
  ['findReplaySession', (read) => [read.findReplaySession('replay_1', 'session_1')]],
  [
    'listReplaySessions',
    (read) => [
      read.listReplaySessions('replay_1', PAGE),
      read.listReplaySessions('replay_1', { ...PAGE, after: 'session_1' }),
    ],
  ],
  [
    'listReplayTurns',
    (read) =>
      ([undefined, 'identical', 'checks_failed'] as const).flatMap((only) =>
        [undefined, 'session_1'].flatMap((session_id) =>
          [undefined, 'session_1.0'].map((after) =>
            read.listReplayTurns('replay_1', {
              ...PAGE,
              ...(only && { only: only as never }),
              ...(session_id !== undefined && { session_id }),
              ...(after !== undefined && { after }),
            }),
          ),
        ),
      ),
  ],
  [
    'listErasures',
    (read) => [
      read.listErasures({ downTo: undefined, limit: 9 }),
      read.listErasures({ downTo: '1' as Position, limit: 9 }),
    ],
  ],
  ['listErasuresAfter', (read) => [read.listErasuresAfter({ after: undefined, limit: 9 })]],
  ['currentGeneration', (read) => [read.currentGeneration()]],
  [
    'listKeys',
    (read) => [
      read.listKeys('sessions', undefined, 9),
      read.listKeys('turns', ['session_1', 1] as never, 9),
    ],
  ],
  ['rowBytes', (read) => [read.rowBytes('turns', ['session_1', 1] as never)]],
  ['findRow', (read) => [read.findRow('sessions', ['session_1'] as never)]],
];

/** What only an operator or a start asks for, and what has few rows. */
const READ_AS_A_WHOLE = [
  'hasApiKeys',
  'countAccounts',
  'listAccounts',
  'pageAccounts',
  'listOpenTurns',
  'listParkedStreams',
  'listSessions',
];

test.each(QUERIES)('%s follows an index', async (_, ask) => {
  await Promise.all(ask(readModels));
  expect(unboundedSteps()).toEqual([]);
});

test('every query is looked at here', () => {
  const { untilShown: _, close: _close, ...queries } = readModels;
  const others = ['checkpoint', 'generation', 'holdsErased', 'damagedWords', 'shown'];
  const named = [...QUERIES.map(([name]) => name), ...READ_AS_A_WHOLE, ...others];
  expect(Object.keys(queries).toSorted()).toEqual(named.toSorted());
});
