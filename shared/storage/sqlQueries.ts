import type { SqlDatabase } from '../readModels/sqlDatabase.ts';
import type { StorageRow } from '../readModels/tables.ts';
import { ALL_DAYS } from './tables.ts';

/** Queries for storage, part of the read models port. */
export interface StorageQueries {
  /** The storage use of an account on one day, and in total. Absent rows count no events. */
  findStorage(
    accountId: string,
    day: string,
  ): Promise<{ today: StorageRow | undefined; total: StorageRow | undefined }>;
}

export function createStorageQueries({ list }: SqlDatabase): StorageQueries {
  const rowsOf = list('storage', 'WHERE account_id = ? AND day IN (?, ?)');
  return {
    async findStorage(accountId, day) {
      const rows = await rowsOf(accountId, day, ALL_DAYS);
      const rowOf = (of: string) => rows.find((row) => row.day === of);
      return { today: rowOf(day), total: rowOf(ALL_DAYS) };
    },
  };
}
