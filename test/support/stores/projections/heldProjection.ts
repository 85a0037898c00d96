import { DatabaseSync } from 'node:sqlite';
import {
  currentGeneration,
  generationFile,
} from '../../../../infra/sqlite/readModels/generations.ts';

/**
 * Lets no projection of this stopped service's folder get on, until the returned function is
 * called.
 */
export function holdProjection(folder: string): () => void {
  const file = generationFile(folder, currentGeneration(folder)!);
  const execute = (sql: string): void => {
    const database = new DatabaseSync(file, { timeout: 5_000 });
    database.exec(sql);
    database.close();
  };
  execute(
    "CREATE TRIGGER held BEFORE INSERT ON checkpoint BEGIN SELECT RAISE(ABORT, 'held by a test'); END",
  );
  return () => execute('DROP TRIGGER held');
}
