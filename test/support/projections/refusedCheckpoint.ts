import { cp, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { currentGeneration, generationFile } from '../../../infra/sqlite/readModels/generations.ts';
import { openSqliteProjectionStore } from '../../../infra/sqlite/readModels/projectionStore.ts';
import { readModelsFolder } from '../../../services/compose/place.ts';
import { tableNames } from '../../../shared/readModels/tables.ts';
import { beyondTheEnd } from '../../../shared/eventlog/positions.ts';
import type { EventLog, StoredEvent } from '../../../shared/ports/eventStore.ts';
import { startEventStoreDbNode, type EventStoreDbNode } from '../eventstoredb-node/index.ts';

const FIXTURE = fileURLToPath(new URL('../../fixtures/refused-checkpoint/', import.meta.url));

/** What a server of 24.2.0 to 24.10.4 says at the end of a catch-up that matched nothing. */
export const BOGUS = '18446744073709551615/18446744073709551615';

/**
 * The fixture's log on a node of its own, and the fixture's data folder as the service looks for it
 * there.
 */
export async function copyFixture(
  folder: string,
): Promise<{ node: EventStoreDbNode; dataFolder: string; readModels: string }> {
  await cp(join(FIXTURE, 'node'), join(folder, 'node'), { recursive: true });
  const node = await startEventStoreDbNode({ folder: join(folder, 'node') });
  const dataFolder = join(folder, 'data');
  const readModels = readModelsFolder({ dataFolder, log: { cluster: node.connectionString } });
  await mkdir(dataFolder);
  await cp(join(FIXTURE, 'service', 'instance-id'), join(dataFolder, 'instance-id'));
  await cp(join(FIXTURE, 'service', 'eventstoredb'), readModels, { recursive: true });
  return { node, dataFolder, readModels };
}

/** Gives a folder a generation of this version, empty, with such a checkpoint. */
export async function leaveCheckpoint(folder: string, position: string): Promise<void> {
  await (await openSqliteProjectionStore({ folder })).close();
  storeCheckpoint(folder, position);
}

/** Runs SQL on one file of the read models. */
export function onFile<Result>(file: string, work: (database: DatabaseSync) => Result): Result {
  const database = new DatabaseSync(file, { timeout: 5_000 });
  try {
    return work(database);
  } finally {
    database.close();
  }
}

/**
 * Stores a checkpoint in the current generation of a folder's read models, past the code that would
 * refuse it.
 */
export const storeCheckpoint = (folder: string, position: string): void =>
  onFile(
    generationFile(folder, currentGeneration(folder)!),
    (database) =>
      void database
        .prepare(
          'INSERT INTO checkpoint VALUES (1, ?) ON CONFLICT DO UPDATE SET position = excluded.position',
        )
        .run(position),
  );

/** Everything in the current generation, its checkpoint included. */
export const contentsOf = (folder: string): Record<string, unknown[]> =>
  onFile(generationFile(folder, currentGeneration(folder)!), (database) =>
    Object.fromEntries(
      ['checkpoint', 'parked_streams', ...tableNames].map((table) => [
        table,
        database.prepare(`SELECT * FROM ${table} ORDER BY 1, 2`).all(),
      ]),
    ),
  );

export const filesOf = async (folder: string): Promise<string[]> =>
  (await readdir(join(folder, 'read-models'))).filter((name) => name.endsWith('.db')).toSorted();
