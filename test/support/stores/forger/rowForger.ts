/**
 * A forger of read models: someone with write access to their database, and nothing else, who changes
 * rows while the service runs.
 */
import { DatabaseSync } from 'node:sqlite';
import { liveSchema, VERSION } from '../../../../infra/postgres/readModels/schema.ts';
import {
  currentGeneration,
  generationFile,
} from '../../../../infra/sqlite/readModels/generations.ts';
import { execute } from '../../servers/postgres/postgresDatabase.ts';

export interface RowForger {
  /** Runs one statement; `{table}` stands for a table, and `?` for the next parameter. */
  run(sql: string, ...parameters: string[]): Promise<Record<string, unknown>[]>;
}

/** A forger of the SQLite read models in a data folder. */
export const sqliteRowForger = (dataFolder: string): RowForger => ({
  async run(sql, ...parameters) {
    const file = generationFile(dataFolder, currentGeneration(dataFolder)!);
    const database = new DatabaseSync(file, { timeout: 5_000 });
    try {
      return database.prepare(sql.replaceAll(/\{(\w+)\}/g, '$1')).all(...parameters);
    } finally {
      database.close();
    }
  },
});

/** A forger of the live read models in PostgreSQL. */
export const postgresRowForger = (databaseUrl: string): RowForger => ({
  run(sql, ...parameters) {
    let number = 0;
    const named = sql
      .replaceAll(/\{(\w+)\}/g, (_, name: string) => `${liveSchema(VERSION)}.${name}`)
      .replaceAll('?', () => `$${(number += 1)}`);
    return execute(databaseUrl, named, parameters);
  },
});
