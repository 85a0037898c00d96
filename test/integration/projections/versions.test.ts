/** A data folder that a release with other tables, or another logic, has left. */
import { rm } from 'node:fs/promises';
import { basename } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore/eventStore.ts';
import {
  buildingFile,
  generationFile,
  retireGenerationsBefore,
} from '../../../infra/sqlite/readModels/generations.ts';
import { openSqliteProjectionStore } from '../../../infra/sqlite/readModels/projectionStore.ts';
import { sqliteVersion, VERSION } from '../../../infra/sqlite/readModels/schema.ts';
import type { EventStore } from '../../../shared/ports/eventStore.ts';
import { TABLES } from '../../../shared/readModels/tables.ts';
import { PROJECTION_LOGIC, type Version } from '../../../shared/readModels/version.ts';
import { fileName } from '../../support/stores/projections/generationNames.ts';
import { OLDER_TABLES } from '../../support/stores/projections/olderTables.ts';
import { readLog } from '../../support/servers/postgres/postgresFaults.ts';
import {
  agentId,
  appendAgents,
  startProjector,
} from '../../support/stores/projections/projector.ts';
import { filesOf, onFile } from '../../support/stores/projections/readModelFiles.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { reached } from '../../support/builders/history.ts';
import { agentsOf } from '../../support/stores/projections/agentsOf.ts';

const AGENTS = 5;
const OLDER = sqliteVersion(OLDER_TABLES);
let folder: string;
let log: EventStore;

beforeEach(async () => {
  folder = await temporaryFolder();
  log = await openSqliteEventStore({ folder });
  await appendAgents(log, 0, AGENTS);
});
afterEach(async () => {
  await log.close();
  await rm(folder, { recursive: true });
});

/** What a release of that version leaves: its read models, caught up. */
async function leave(version: Version): Promise<void> {
  const store = await openSqliteProjectionStore({ folder, version });
  const events = await readLog(log);
  await store.apply(events, reached(events.at(-1)!.position));
  await store.close();
}

const columnsIn = (version: Version): unknown[] =>
  onFile(generationFile(folder, 1, version), (database) =>
    database
      .prepare("SELECT name FROM pragma_table_info('agents')")
      .all()
      .map(({ name }) => name),
  );

test.each([
  ['a column less', OLDER],
  ['another logic of its projections', sqliteVersion(TABLES, PROJECTION_LOGIC + 1)],
])('read models of a release with %s are left, and filled again from the log', async (_, other) => {
  await leave(other);
  expect(columnsIn(other).includes('component')).toBe(other !== OLDER);
  const projector = await startProjector(folder);
  try {
    expect(await projector.readModels.untilShown((await log.head())!, 20_000)).toBe(true);
    expect(await agentsOf(projector.readModels)).toHaveLength(AGENTS);
    expect(await projector.readModels.findAgent(agentId(1))).toMatchObject({ component: 'Chat' });
    expect(columnsIn(VERSION)).toContain('component');
  } finally {
    await projector.close();
  }
  expect(await filesOf(folder)).toEqual([fileName(1)]);
});

test('a release that comes back fills its own read models again, and deletes those of the newer one', async () => {
  await leave(VERSION);
  await leave(OLDER);
  retireGenerationsBefore(folder, 1, OLDER);
  expect(await filesOf(folder)).toEqual([`v${OLDER.number}.1.db`]);
});

test('a rebuild of another version keeps its file while it is at work', async () => {
  const file = buildingFile(folder, 1, OLDER);
  await leave(VERSION);
  onFile(file, (database) => {
    database.exec('BEGIN IMMEDIATE');
    retireGenerationsBefore(folder, 1);
    database.exec('ROLLBACK');
  });
  expect(await filesOf(folder)).toContain(basename(file));
  retireGenerationsBefore(folder, 1);
  expect(await filesOf(folder)).toEqual([fileName(1)]);
});
