import { afterAll, afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { Client, Pool } from 'pg';
import { openPostgresReadModels } from '../../../infra/postgres/readModels/readModels.ts';
import type { ReadModels } from '../../../shared/ports/readModels.ts';
import { OUTCOMES } from '../../../shared/sessions/turns/outcomes.ts';
import { sessionStarted } from '../../support/builders/events.ts';
import { reached, recordHistory } from '../../support/builders/history.ts';
import { sessionFilters } from '../../support/builders/sessionFilters.ts';
import {
  createTestDatabase,
  type TestDatabase,
} from '../../support/servers/postgres/postgresDatabase.ts';
import { openActive } from '../../support/servers/postgres/postgresProjector.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';

const server = await startPostgresServer();
/** More than the entries of an index that is read as a whole. */
const SESSIONS = 1_100;
const PAGE = { limit: 3, bytes: 1_000 };

interface Plan {
  'Node Type': string;
  'Relation Name'?: string;
  'Sort Key'?: string[];
  'Index Name'?: string;
  'Index Cond'?: string;
  Filter?: string;
  Plans?: Plan[];
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];

/** Sorts the rows of one page, or the few entries of an index. */
const isBounded = (sql: string, { 'Sort Key': keys = [] }: Plan): boolean =>
  keys.some((key) => key.includes('place')) || sql.includes(') AS entry');

/** Reads all rows of a table, or all accounts' entries of an index. */
function isUnbounded({ 'Node Type': type, 'Relation Name': table, ...node }: Plan): boolean {
  if (table === 'projections') return false;
  if (!/Index.* Scan/.test(type)) return type === 'Seq Scan';
  const { 'Index Cond': condition, Filter: filter = '' } = node;
  if (condition === undefined) return true;
  return filter.includes('account_id') && !/account_id|_id = /.test(condition);
}

function suite(serverUrl: string): void {
  let database: TestDatabase;
  let readModels: ReadModels;
  let client: Client;
  let asked: Map<string, unknown[]>;

  beforeEach(async () => {
    database = await createTestDatabase(serverUrl);
    const store = await openActive(database.url);
    const history = recordHistory();
    const events = Array.from({ length: SESSIONS }, (_, nth) =>
      history.record({ stream: `session-session_${10_000 + nth}` }, sessionStarted('agent_1')),
    );
    await store.apply(events, reached(history.lastPosition()));
    await store.complete();
    await store.close();
    readModels = openPostgresReadModels({ databaseUrl: database.url });
    client = new Client(database.url);
    await client.connect();
    // What remains of these is what no index can do.
    for (const way of ['seqscan', 'bitmapscan', 'sort', 'hashjoin', 'mergejoin'])
      await client.query(`SET enable_${way} = off`);
    asked = new Map();
    const { query } = Pool.prototype;
    jest.spyOn(Pool.prototype, 'query').mockImplementation(function (
      this: Pool,
      ...given: unknown[]
    ) {
      const [sql, parameters] = given as [string, unknown[]];
      asked.set(sql, parameters);
      return (query as (...args: unknown[]) => unknown).apply(this, given);
    });
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await client.end();
    await readModels.close();
    await database.drop();
  });

  /** The steps of the asked statements that read all sessions, or sort what they have found. */
  async function unboundedSteps(): Promise<string[]> {
    const steps: string[] = [];
    for (const [sql, parameters] of asked) {
      const { rows } = await client.query<{ 'QUERY PLAN': { Plan: Plan }[] }>(
        `EXPLAIN (FORMAT JSON) ${sql}`,
        parameters,
      );
      for (const node of nodesOf(rows[0]!['QUERY PLAN'][0]!.Plan)) {
        const { 'Node Type': type, 'Relation Name': table } = node;
        if (isUnbounded(node) || (/Sort/.test(type) && !isBounded(sql, node)))
          steps.push(`${type} ${table ?? node['Sort Key']?.join()}: ${sql}`);
      }
    }
    return steps;
  }

  /** The definitions of the indexes that the asked statements follow. */
  async function indexesOf(): Promise<string[]> {
    const indexes: (string | undefined)[] = [];
    for (const [sql, parameters] of asked) {
      const { rows } = await client.query<{ 'QUERY PLAN': { Plan: Plan }[] }>(
        `EXPLAIN (FORMAT JSON) ${sql}`,
        parameters,
      );
      indexes.push(...nodesOf(rows[0]!['QUERY PLAN'][0]!.Plan).map((node) => node['Index Name']));
    }
    const { rows } = await client.query<{ indexdef: string }>(
      'SELECT indexdef FROM pg_indexes WHERE indexname = ANY($1)',
      [indexes],
    );
    return rows.map(({ indexdef }) => indexdef);
  }

  test('every list of sessions follows an index, whatever its filter', async () => {
    for (const [, filter] of sessionFilters())
      for (const order of ['newest', 'oldest'] as const)
        for (const after of [undefined, 'session_10500']) {
          const page = { ...PAGE, order, ...(after !== undefined && { after }) };
          await readModels.listSessions('acct_1', { ...page, ...filter });
        }
    expect(asked.size).toBeGreaterThan(100);
    expect(await unboundedSteps()).toEqual([]);
  }, 120_000);

  test.each(OUTCOMES)(
    'the list of sessions with %s turns reads an index of these',
    async (outcome) => {
      await readModels.listSessions('acct_1', { ...PAGE, outcome });
      expect(await indexesOf()).toContainEqual(expect.stringContaining(`turns_${outcome} > 0`));
    },
  );

  test('the list of sessions without a filter reads an index of those that no replay made', async () => {
    for (const order of ['newest', 'oldest'] as const)
      for (const after of [undefined, 'session_10500'])
        await readModels.listSessions('acct_1', { ...PAGE, order, ...(after && { after }) });
    expect(asked.size).toBe(4);
    expect(await indexesOf()).toEqual([
      expect.stringContaining("((status <> 'erased'::text) AND (replay_id IS NULL))"),
    ]);
  });

  test.each([
    ['a replay made of another', 'listReplaysOf', 'replay_of'],
    ['were forked from another', 'listForksOf', 'fork_of'],
  ] as const)('the sessions that %s are read from an index without erased ones', async (...of) => {
    const [, query, column] = of;
    for (const after of [undefined, 'session_10500'])
      await readModels[query]('session_10000', { ...PAGE, ...(after && { after }) });
    expect(asked.size).toBe(2);
    expect(await indexesOf()).toEqual([
      expect.stringContaining(`((${column} IS NOT NULL) AND (status <> 'erased'::text))`),
    ]);
  });

  test.each([
    ['changed', '(replay_id, outcome, entry)'],
    ['checks_failed', '(replay_id, entry) WHERE (failed_checks > 0)'],
  ] as const)(
    'the turns of a replay that are %s are read from an index of these',
    async (only, on) => {
      for (const after of [undefined, 'session_1.0'])
        await readModels.listReplayTurns('replay_1', { ...PAGE, only, ...(after && { after }) });
      expect(asked.size).toBe(2);
      expect(await indexesOf()).toEqual([expect.stringContaining(on)]);
    },
  );

  test('lists of agents, webhooks and replays follow an index', async () => {
    for (const page of [PAGE, { ...PAGE, after: 'x' }]) {
      await readModels.listAgents('acct_1', page);
      await readModels.listAgents('acct_1', { ...page, deleted: true });
      await readModels.listWebhooks('acct_1', page);
      await readModels.listWebhooks('acct_1', { ...page, deleted: true });
      await readModels.listReplays('acct_1', page);
      await readModels.listReplaySessions('replay_1', page);
      await readModels.listReplayTurns('replay_1', { ...page, only: 'changed' });
    }
    expect(asked.size).toBe(14);
    expect(await unboundedSteps()).toEqual([]);
  }, 60_000);
}

if (server) {
  suite(server.url);
  afterAll(server.close);
} else {
  withoutPostgres('the plans of queries in PostgreSQL');
}
