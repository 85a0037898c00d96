/** Followers of a log that is changed while they are stopped. */
import { expect } from '@jest/globals';
import {
  currentGeneration,
  generationFile,
  retireGenerationsBefore,
} from '../../../../infra/sqlite/readModels/generations.ts';
import { openSqliteProjectionStore } from '../../../../infra/sqlite/readModels/projectionStore.ts';
import { rowDecoder } from '../../../../infra/sqlite/readModels/statements.ts';
import { columnsOf } from '../../../../infra/postgres/readModels/statements.ts';
import { liveSchema, VERSION } from '../../../../infra/postgres/readModels/schema.ts';
import { followGenerations } from '../../../../services/followers/projector/followGenerations.ts';
import { fold, rowMaps } from '../../../../shared/projections/fold.ts';
import { planBatch } from '../../../../shared/projections/plan.ts';
import { TABLES, tableNames } from '../../../../shared/readModels/tables.ts';
import type { Checkpoint, StoredEvent } from '../../../../shared/ports/eventStore.ts';
import { recordingLogger } from '../projections/projector.ts';
import { contentsOf, onFile } from '../projections/readModelFiles.ts';
import { execute } from '../../servers/postgres/postgresDatabase.ts';
import { startPostgresProjector } from '../../servers/postgres/postgresProjector.ts';
import { eventually } from '../../processes/operator.ts';
import type { FixedLog } from '../../fakes/fixedLog.ts';

export interface Follower {
  name: string;
  checkpoint: () => Promise<Checkpoint | undefined>;
  /** Follows the log to its end, or until it is refused: resolves with the reason then. */
  follow: (log: FixedLog) => Promise<string | undefined>;
  /** All that it keeps. */
  contents: () => Promise<unknown>;
  /** Expects that it shows these events and nothing else that it may not. */
  expectRight: (events: readonly StoredEvent[]) => Promise<void>;
}

type Rows = Record<string, object[]>;

const canonical = (row: object): string =>
  JSON.stringify(Object.entries(row).toSorted(([a], [b]) => (a < b ? -1 : 1)));

const sorted = (rows: Rows): Rows =>
  Object.fromEntries(
    Object.entries(rows).map(([table, found]) => [
      table,
      found.map((row) => ({ ...row })).toSorted((a, b) => (canonical(a) < canonical(b) ? -1 : 1)),
    ]),
  );

/** The rows that the events make. */
function due(events: readonly StoredEvent[]): Rows {
  const rows = rowMaps();
  fold(planBatch(events), rows, new Set());
  return sorted(Object.fromEntries(tableNames.map((table) => [table, [...rows[table].values()]])));
}

/** Read models in a data folder. */
export function sqliteFollower(folder: string): Follower {
  async function follow(log: FixedLog): Promise<string | undefined> {
    const end = new AbortController();
    let refused: string | undefined;
    await followGenerations({
      log,
      logger: recordingLogger().logger,
      signal: end.signal,
      generations: {
        open: (atLeast) => openSqliteProjectionStore({ folder, atLeast }),
        current: () => currentGeneration(folder),
        retireBefore: (generation) => retireGenerationsBefore(folder, generation),
      },
      // A turn of the event loop later, so that the batch is dealt with.
      onProgress: ({ caughtUp }) => void (caughtUp && setImmediate(() => end.abort())),
      report({ type, reason }) {
        if (type !== 'log_changed') return;
        refused = reason;
        if (reason !== undefined) end.abort();
      },
    });
    return refused;
  }

  return {
    name: 'read models in SQLite',
    async checkpoint() {
      const store = await openSqliteProjectionStore({ folder });
      const found = await store.checkpoint();
      await store.close();
      return found;
    },
    follow,
    contents: async () => contentsOf(folder),
    async expectRight(events) {
      const rows = onFile(generationFile(folder, currentGeneration(folder)!), (database) =>
        Object.fromEntries(
          tableNames.map((table) => [
            table,
            database
              .prepare(`SELECT * FROM ${table}`)
              .all()
              .map((row) => rowDecoder(TABLES[table])(row) as object),
          ]),
        ),
      );
      expect(sorted(rows)).toEqual(due(events));
    },
  };
}

const LIVE = liveSchema(VERSION);

/** Read models in a PostgreSQL database. */
export function postgresFollower(databaseUrl: string): Follower {
  const rowOf = async (columns: string): Promise<Record<string, unknown> | undefined> => {
    const there = await execute(databaseUrl, "SELECT to_regclass('turnlog.projections') AS found");
    if (there[0]?.['found'] === null) return undefined;
    return (
      await execute(databaseUrl, `SELECT ${columns} FROM turnlog.projections WHERE slot = 'live'`)
    )[0];
  };

  async function follow(log: FixedLog): Promise<string | undefined> {
    let refused: string | undefined;
    let caughtUp = false;
    const projector = startPostgresProjector({
      log,
      databaseUrl,
      onLogChanged: (reason) => void (refused = reason),
      onProgress: (batch) => void (caughtUp = batch.caughtUp),
    });
    try {
      await eventually(
        () => rowOf('complete, refused, log_changed'),
        (row) =>
          refused === undefined
            ? caughtUp && row?.['complete'] === true && row['refused'] === null
            : row?.['log_changed'] === refused,
      );
    } finally {
      await projector.stop();
    }
    return refused;
  }

  async function rows(): Promise<Rows> {
    if ((await rowOf('complete'))?.['complete'] !== true) return {};
    const found = tableNames.map(async (table): Promise<[string, object[]]> => {
      const columns = columnsOf(table, TABLES[table]);
      const [all] = await execute(
        databaseUrl,
        `SELECT coalesce(json_agg(found), '[]') AS rows FROM (SELECT ${columns} FROM ${LIVE}.${table}) AS found`,
      );
      return [table, all!['rows'] as object[]];
    });
    return sorted(Object.fromEntries(await Promise.all(found)));
  }

  return {
    name: 'read models in PostgreSQL',
    async checkpoint() {
      const row = await rowOf('log_id, event_position AS position, event_id, event_hash');
      return row?.['position'] ? (row as unknown as Checkpoint) : undefined;
    },
    follow,
    contents: async () => [await rows(), await rowOf('position, event_id, refused, generation')],
    expectRight: async (events) => expect(await rows()).toEqual(due(events)),
  };
}
