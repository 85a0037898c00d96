import { existsSync, statSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { isRowFailure } from '../../../infra/sqlite/readModels/failures.ts';
import { openSqliteProjectionStore } from '../../../infra/sqlite/readModels/projectionStore.ts';
import { openSqliteReadModels } from '../../../infra/sqlite/readModels/readModels.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import {
  createProgressChannel,
  type ProjectionProgress,
} from '../../../shared/projections/progress.ts';
import { cacheRowsUntilChange } from '../../../shared/projections/cacheRowsUntilChange.ts';
import { agentCreated } from '../../support/builders/events.ts';
import { positionOf, recordHistory, reached } from '../../support/builders/history.ts';
import { fileName } from '../../support/stores/projections/generationNames.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

let folder: string;
const fileOf = (name: string): string => join(folder, 'read-models', name);

beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(() => rm(folder, { recursive: true }));

const created = (id: string) => recordHistory().record({ stream: `agent-${id}` }, agentCreated());

const caughtUpTo = (position: Position, generation: number): ProjectionProgress => ({
  position,
  generation,
  caughtUp: true,
  percent: 100,
  keepsKnownRows: false,
});

test('only the owner may read the files', async () => {
  const store = await openSqliteProjectionStore({ folder });
  await store.apply([created('agent_1')], reached(positionOf(1)));
  expect(
    [fileName(1), `${fileName(1)}-wal`, `${fileName(1)}-shm`].map(
      (name) => statSync(fileOf(name)).mode & 0o777,
    ),
  ).toEqual([0o600, 0o600, 0o600]);
  expect(statSync(fileOf('')).mode & 0o777).toBe(0o700);
  await store.close();
});

test('a database that is locked for too long is store_unavailable: nothing changes, nothing is parked, and it works again later', async () => {
  const store = await openSqliteProjectionStore({ folder });
  const other = new DatabaseSync(fileOf(fileName(1)));
  other.exec('BEGIN IMMEDIATE');
  await expect(store.apply([created('agent_1')], reached(positionOf(1)))).rejects.toMatchObject({
    code: 'store_unavailable',
    retriable: true,
  });
  other.exec('ROLLBACK');
  expect(await store.checkpoint()).toBeUndefined();
  expect(await store.apply([created('agent_1')], reached(positionOf(1)))).toEqual([]);
  expect(
    other
      .prepare(
        'SELECT (SELECT count(*) FROM agents) AS agents, (SELECT count(*) FROM parked_streams) AS parked',
      )
      .get(),
  ).toEqual({ agents: 1, parked: 0 });
  other.close();
  await store.close();
});

test('rows and checkpoint change together or not at all', async () => {
  const store = await openSqliteProjectionStore({ folder });
  const other = new DatabaseSync(fileOf(fileName(1)));
  other.exec(
    "CREATE TRIGGER refuse BEFORE INSERT ON checkpoint BEGIN SELECT RAISE(ABORT, 'refused'); END",
  );
  await expect(store.apply([created('agent_1')], reached(positionOf(1)))).rejects.toMatchObject({
    code: 'store_unavailable',
  });
  const agents = other.prepare('SELECT count(*) AS agents FROM agents');
  expect([agents.get(), await store.checkpoint()]).toEqual([{ agents: 0 }, undefined]);
  other.exec('DROP TRIGGER refuse');
  await store.apply([created('agent_1')], reached(positionOf(1)));
  expect([agents.get(), await store.checkpoint()]).toEqual([
    { agents: 1 },
    reached(positionOf(1)).checkpoint,
  ]);
  other.close();
  await store.close();
});

test('a full disk is not blamed on the row that met it, a constraint is', () => {
  const database = new DatabaseSync(':memory:');
  database.exec('PRAGMA max_page_count = 3; CREATE TABLE texts (text TEXT NOT NULL) STRICT');
  const failure = (text: string | null): unknown => {
    try {
      return database.prepare('INSERT INTO texts VALUES (?)').run(text);
    } catch (error) {
      return error;
    }
  };
  const full = failure('x'.repeat(100_000));
  expect(full).toMatchObject({ message: 'database or disk is full' });
  expect([isRowFailure(full), isRowFailure(failure(null))]).toEqual([false, true]);
  database.close();
});

test('a damaged file is replaced by an empty one, because the log has everything that was in it', async () => {
  const store = await openSqliteProjectionStore({ folder });
  await store.apply([created('agent_1')], reached(positionOf(1)));
  await store.close();
  await writeFile(fileOf(fileName(1)), 'this is not a database '.repeat(1000));
  const again = await openSqliteProjectionStore({ folder });
  expect(await again.checkpoint()).toBeUndefined();
  await again.close();
});

test('a file of another schema version is left alone and not read', async () => {
  const older = await openSqliteProjectionStore({ folder });
  await older.close();
  await writeFile(fileOf('v3.5.db'), 'of a newer version');
  const store = await openSqliteProjectionStore({ folder });
  expect(store.generation).toBe(1);
  await store.close();
  expect(existsSync(fileOf('v3.5.db'))).toBe(true);
});

test('queries say how far a first build is until it is complete', async () => {
  const store = await openSqliteProjectionStore({ folder });
  const progress = createProgressChannel();
  const readModels = openSqliteReadModels({ folder, progress });
  progress.publish({ ...caughtUpTo(positionOf(1), 1), caughtUp: false, percent: 42.7 });
  await expect(readModels.listAccounts()).rejects.toMatchObject({
    code: 'store_unavailable',
    message: 'The read models are being rebuilt: 42 %',
  });
  await readModels.close();
  await store.close();
});

test('read models do not go over to a generation that is still being built and behind what they have shown', async () => {
  const older = await openSqliteProjectionStore({ folder });
  const newer = await openSqliteProjectionStore({ folder, atLeast: 2 });
  const progress = createProgressChannel();
  const readModels = openSqliteReadModels({ folder, progress });
  await older.apply([created('agent_1')], reached(positionOf(5)));
  progress.publish(caughtUpTo(positionOf(5), 1));
  progress.publish({ ...caughtUpTo(positionOf(4), 2), caughtUp: false, percent: 80 });
  expect(await readModels.findAgent('agent_1')).toBeDefined();
  await newer.apply([created('agent_1'), created('agent_2')], reached(positionOf(6)));
  progress.publish(caughtUpTo(positionOf(6), 2));
  expect(await readModels.findAgent('agent_2')).toBeDefined();
  await readModels.close();
  await Promise.all([older.close(), newer.close()]);
});

test('read models go over to a generation that has caught up, though the log has become shorter and nobody says why', async () => {
  const older = await openSqliteProjectionStore({ folder });
  const newer = await openSqliteProjectionStore({ folder, atLeast: 2 });
  const progress = createProgressChannel();
  const readModels = openSqliteReadModels({ folder, progress });
  await older.apply([created('agent_phantom')], reached(positionOf(5)));
  progress.publish(caughtUpTo(positionOf(5), 1));
  await newer.apply([created('agent_1')], reached(positionOf(2)));
  progress.publish(caughtUpTo(positionOf(2), 2));
  expect(await readModels.findAgent('agent_phantom')).toBeUndefined();
  expect(await readModels.findAgent('agent_1')).toBeDefined();
  expect(await readModels.untilShown(positionOf(3), 50)).toBe(false);
  const waiting = readModels.untilShown(positionOf(3), 5_000);
  progress.publish(caughtUpTo(positionOf(3), 2));
  expect(await waiting).toBe(true);
  await readModels.close();
  await Promise.all([older.close(), newer.close()]);
});

test('looking for erased words takes no lock while there are none', async () => {
  const store = await openSqliteProjectionStore({ folder });
  const other = new DatabaseSync(fileOf(fileName(1)));
  other.exec('BEGIN IMMEDIATE');
  expect(await store.forget!(true)).toBe('nothing');
  other.exec('ROLLBACK');
  other.close();
  await store.close();
});

test('a reader that waits requests progress, again where a batch ends before its position', async () => {
  const store = await openSqliteProjectionStore({ folder });
  const { publish, subscribe } = createProgressChannel();
  let requests = 0;
  const request = (): void => void (requests += 1);
  const readModels = openSqliteReadModels({ folder, progress: { subscribe, request } });
  publish(caughtUpTo(positionOf(1), 1));
  expect(await readModels.untilShown(positionOf(1), 5_000)).toBe(true);
  expect(requests).toBe(0);
  const waiting = readModels.untilShown(positionOf(3), 5_000);
  expect(requests).toBe(1);
  publish(caughtUpTo(positionOf(2), 1));
  expect(requests).toBe(2);
  publish(caughtUpTo(positionOf(3), 1));
  expect(await waiting).toBe(true);
  expect(requests).toBe(2);
  await readModels.close();
  await store.close();
});

test('what is remembered of a generation goes with it, also where the next one ends with sessions alone', async () => {
  const older = await openSqliteProjectionStore({ folder });
  const newer = await openSqliteProjectionStore({ folder, atLeast: 2 });
  const progress = createProgressChannel();
  const readModels = openSqliteReadModels({ folder, progress });
  const rows = cacheRowsUntilChange(readModels, progress);
  await expect(rows.findAgent('agent_phantom')).rejects.toMatchObject({
    code: 'store_unavailable',
  });
  await older.apply([created('agent_phantom')], reached(positionOf(5)));
  progress.publish(caughtUpTo(positionOf(5), 1));
  progress.publish({ ...caughtUpTo(positionOf(1), 2), caughtUp: false, percent: 50 });
  expect(await rows.findAgent('agent_phantom')).toBeDefined();
  await newer.apply([created('agent_1')], reached(positionOf(2)));
  progress.publish({ ...caughtUpTo(positionOf(2), 2), keepsKnownRows: true });
  expect(await rows.findAgent('agent_phantom')).toBeUndefined();
  await readModels.close();
  await Promise.all([older.close(), newer.close()]);
});
