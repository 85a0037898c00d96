import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test } from '@jest/globals';
import { Client } from 'pg';
import { dropUnerasedBuilding } from '../../../infra/postgres/readModels/generations.ts';
import { openPostgresRebuildStore } from '../../../infra/postgres/readModels/rebuildStore.ts';
import { liveSchema, schemaOf, VERSION } from '../../../infra/postgres/readModels/schema.ts';
import {
  sessionErased,
  sessionStarted,
  turnCompleted,
  turnStarted,
} from '../../support/builders/events.ts';
import { reached, recordHistory } from '../../support/builders/history.ts';
import {
  createTestDatabase,
  execute,
  type TestDatabase,
} from '../../support/servers/postgres/postgresDatabase.ts';
import { openActive } from '../../support/servers/postgres/postgresProjector.ts';
import { startPostgresServer } from '../../support/servers/postgres/postgresServer.ts';
import { eventually } from '../../support/processes/operator.ts';

const server = await startPostgresServer();
const LIVE = liveSchema(VERSION);
const BUILDING = schemaOf(VERSION, 'building');
afterAll(() => server!.close());
const anyTokens = (count: number): string[] =>
  Array.from({ length: count }, () =>
    [...randomBytes(8)].map((byte) => String.fromCharCode(97 + (byte % 26))).join(''),
  );

test('erased words leave the table of PostgreSQL by themselves, and its index by the command that operators are told', async () => {
  const database = await createTestDatabase(server!.url);
  const store = await openActive(database.url, VERSION, 500);
  try {
    await store.complete();
    const history = recordHistory();
    const recorded = { stream: 'session-session_1' };
    const other = { stream: 'session-session_2' };
    await store.apply(
      [
        history.record(recorded, sessionStarted()),
        history.record(recorded, turnStarted(1)),
        history.record(recorded, turnCompleted(1)),
        history.record(other, sessionStarted()),
        history.record(other, turnStarted(1)),
        history.record(other, turnCompleted(1)),
      ],
      reached(history.lastPosition()),
    );
    const tokens = anyTokens(300);
    const kept = anyTokens(300);
    const [first, second] = await store.unindexed();
    await store.index([
      { ...first!, tokens },
      { ...second!, tokens: kept },
    ]);
    const held = async (relation: string, words: string[]): Promise<number> => {
      await execute(database.url, 'CHECKPOINT');
      const [row] = await execute(
        database.url,
        `SELECT encode(pg_read_binary_file(pg_relation_filepath('${LIVE}.${relation}')), 'escape') AS bytes`,
      );
      return words.filter((word) => String(row!['bytes']).includes(word)).length;
    };
    const vacuums = async (): Promise<number> => {
      const [row] = await execute(
        database.url,
        `SELECT vacuum_count::integer AS times FROM pg_stat_user_tables WHERE relname = 'turn_words'`,
      );
      return (row?.['times'] as number | undefined) ?? 0;
    };
    await eventually(vacuums, (times) => times >= 1);
    const before = await vacuums();
    const erased = history.record(recorded, sessionErased());
    await store.apply([erased], reached(erased.position));
    await eventually(vacuums, (times) => times > before);
    // Another one, in case that the first was a bit early.
    await execute(database.url, `VACUUM (INDEX_CLEANUP ON) ${LIVE}.turn_words`);
    const guide = await readFile(new URL('../../../docs/operations.md', import.meta.url), 'utf8');
    const [, told] = /^(SELECT format\('REINDEX .*) \\gexec$/m.exec(guide)!;
    const commands = await execute(database.url, told!);
    expect(commands).toEqual([{ format: `REINDEX INDEX CONCURRENTLY ${LIVE}.turn_words_words` }]);
    await execute(database.url, String(commands[0]!['format']));
    expect({
      table: await held('turn_words', tokens),
      index: await held('turn_words_words', tokens),
      keptInIndex: await held('turn_words_words', kept),
    }).toEqual({ table: 0, index: 0, keptInIndex: 300 });
  } finally {
    await store.close();
    await database.drop();
  }
}, 60_000);

test('turns that were read before a rebuild was published are not indexed in its index', async () => {
  const database = await createTestDatabase(server!.url);
  const store = await openActive(database.url, VERSION);
  try {
    await store.complete();
    const { record } = recordHistory();
    const events = [sessionStarted(), turnStarted(1), turnCompleted(1)].map((event) =>
      record({ stream: 'session-session_1' }, event),
    );
    await store.apply(events, reached(events.at(-1)!.position));
    const readTurns = async () =>
      (await store.unindexed()).map((turn) => ({ ...turn, tokens: ['apple'] }));
    const turns = await readTurns();
    await execute(database.url, 'UPDATE turnlog.projections SET generation = generation + 1');
    await store.index(turns);
    const count = `SELECT (SELECT count(*) FROM ${LIVE}.turn_words)::int AS words, (SELECT count(*) FROM ${LIVE}.indexed)::int AS indexed`;
    expect(await execute(database.url, count)).toEqual([{ words: 0, indexed: 0 }]);
    await store.index(await readTurns());
    expect(await execute(database.url, count)).toEqual([{ words: 1, indexed: 1 }]);
  } finally {
    await store.close();
    await database.drop();
  }
}, 60_000);

/** The generation of a rebuild, as far as it exists. */
async function buildingIn({ url }: TestDatabase) {
  const [found] = await execute(
    url,
    `SELECT to_regnamespace('${BUILDING}') IS NOT NULL AS schema,
       (SELECT event_position FROM turnlog.projections WHERE slot = 'building') AS position`,
  );
  return found;
}
const untilRemoved = async (database: TestDatabase): Promise<void> => {
  const left = await eventually(
    () => buildingIn(database),
    (found) => found?.['schema'] === false,
  );
  expect(left).toEqual({ schema: false, position: null });
};

/** A session that is erased, and the positions before and after that. */
function erasedSession() {
  const { record } = recordHistory();
  const stream = { stream: 'session-session_1' };
  const talked = [sessionStarted(), turnStarted(1), turnCompleted(1)].map((event) =>
    record(stream, event),
  );
  const erased = record(stream, sessionErased());
  const [before, after] = [reached(talked.at(-1)!.position), reached(erased.position)];
  return { talked, erased, before, after };
}

test.each([['without'], ['with']])(
  'a rebuild that ends before it comes to an erasure leaves no erased text, %s a restart of the projector',
  async (restart) => {
    const database = await createTestDatabase(server!.url);
    let store = await openActive(database.url);
    try {
      await store.complete();
      const { talked, erased, before, after } = erasedSession();
      await store.apply(talked, before);
      const killed = await openPostgresRebuildStore({ databaseUrl: database.url });
      await killed.apply(talked, before);
      await store.apply([erased], after);
      // The projector has examined the rebuild before it applies this.
      await store.apply([], after);
      expect(await buildingIn(database)).toEqual({ schema: true, position: before.position });
      if (restart === 'with') await store.close();
      await killed.close();
      if (restart === 'with') store = await openActive(database.url);
      await untilRemoved(database);

      const stopped = await openPostgresRebuildStore({ databaseUrl: database.url });
      await stopped.apply([...talked, erased], after);
      await stopped.close();
      await store.close();
      store = await openActive(database.url);
      await store.apply([], after);
      expect(await buildingIn(database)).toEqual({ schema: true, position: after.position });
    } finally {
      await store.close();
      await database.drop();
    }
  },
  60_000,
);

test('what such a rebuild has left does not hold the projector up while a backup reads it', async () => {
  const database = await createTestDatabase(server!.url);
  const store = await openActive(database.url);
  const backup = new Client({ connectionString: database.url });
  try {
    await store.complete();
    const { talked, erased, before, after } = erasedSession();
    await store.apply(talked, before);
    const killed = await openPostgresRebuildStore({ databaseUrl: database.url });
    await killed.apply(talked, before);
    await killed.close();
    await backup.connect();
    await backup.query(`BEGIN; LOCK TABLE ${BUILDING}.turns IN ACCESS SHARE MODE`);
    const began = performance.now();
    await store.apply([erased], after);
    await store.apply([], after);
    // A statement may take 30 s.
    expect(performance.now() - began).toBeLessThan(10_000);
    await backup.query('COMMIT');
    await untilRemoved(database);
  } finally {
    await backup.end();
    await store.close();
    await database.drop();
  }
}, 60_000);

test('a rebuild that starts while such a rebuild is examined waits for that', async () => {
  const database = await createTestDatabase(server!.url);
  const [projector, blocker] = [1, 2].map(() => new Client({ connectionString: database.url }));
  try {
    const store = await openActive(database.url);
    await store.complete();
    const { talked, before } = erasedSession();
    await store.apply(talked, before);
    const killed = await openPostgresRebuildStore({ databaseUrl: database.url });
    await killed.apply(talked, before);
    await killed.close();
    await store.close();
    await projector!.connect();
    await blocker!.connect();
    await blocker!.query(`BEGIN; LOCK TABLE ${LIVE}.erasures`);
    const examined = dropUnerasedBuilding(projector!, VERSION);
    const blocked = `SELECT FROM pg_locks WHERE NOT granted AND relation = '${LIVE}.erasures'::regclass`;
    await eventually(
      () => execute(database.url, blocked),
      ({ length }) => length > 0,
    );
    const opened = openPostgresRebuildStore({ databaseUrl: database.url });
    const released = sleep(500).then(() => blocker!.query('COMMIT'));
    const rebuild = await opened;
    await rebuild.close();
    await released;
    expect(await examined).toBe(true);
  } finally {
    await projector!.end();
    await blocker!.end();
    await database.drop();
  }
}, 60_000);
