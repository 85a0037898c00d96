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
import { locateReadModels, locateStorage } from '../../../../services/compose/logLocation.ts';
import { parseConfig } from '../../../../shared/lib/config/config.ts';
import { execute } from '../../servers/postgres/postgresDatabase.ts';

export interface RowForger {
  /** Runs one statement; `{table}` stands for a table, and `?` for the next parameter. */
  run(sql: string, ...parameters: string[]): Promise<Record<string, unknown>[]>;
}

/** A forger of the SQLite read models in a folder. */
const sqliteRowForger = (folder: string): RowForger => ({
  async run(sql, ...parameters) {
    const file = generationFile(folder, currentGeneration(folder)!);
    const database = new DatabaseSync(file, { timeout: 5_000 });
    try {
      return database.prepare(sql.replaceAll(/\{(\w+)\}/g, '$1')).all(...parameters);
    } finally {
      database.close();
    }
  },
});

/** A forger of the live read models in PostgreSQL. */
const postgresRowForger = (databaseUrl: string): RowForger => ({
  run(sql, ...parameters) {
    let number = 0;
    const named = sql
      .replaceAll('{checkpoint}', 'turnlog.projections')
      .replaceAll(/\{(\w+)\}/g, (_, name: string) => `${liveSchema(VERSION)}.${name}`)
      .replaceAll('?', () => `$${(number += 1)}`);
    return execute(databaseUrl, named, parameters);
  },
});

/** A forger of the read models of a service with these options. */
export function rowForger(env: Record<string, string>): RowForger {
  const place = locateStorage(parseConfig(env));
  return place.kind === 'embedded'
    ? sqliteRowForger(locateReadModels(place))
    : postgresRowForger(place.databaseUrl);
}
