import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import {
  currentGeneration,
  generationFile,
} from '../../../../infra/sqlite/readModels/generations.ts';
import { tableNames } from '../../../../shared/readModels/tables.ts';

/** Runs SQL on one file of the read models. */
export function onFile<Result>(file: string, work: (database: DatabaseSync) => Result): Result {
  const database = new DatabaseSync(file, { timeout: 5_000 });
  try {
    return work(database);
  } finally {
    database.close();
  }
}

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
