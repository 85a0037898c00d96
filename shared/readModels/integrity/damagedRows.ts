import { LIMITS } from '../../limits.ts';
import { TurnlogError } from '../../lib/errors/turnlogError.ts';

/** The most rows that are remembered. */
const MAX_ROWS = 10_000;

/** A row of the read models that does not say what the log says. */
export interface DamagedRow {
  table: string;
  /** The row's key, with `/` between its parts. */
  key: string;
  /** The first column that differs, or that the row is `missing` or `unrecorded`. */
  column: string;
}

/** The damaged rows that this process has found. */
export interface DamagedRows {
  record(row: DamagedRow): void;
  /** Removes a row that was found to match the log. */
  clear(row: Pick<DamagedRow, 'table' | 'key'>): void;
  has(row: Pick<DamagedRow, 'table' | 'key'>): boolean;
  /** Forgets all rows, because others have replaced them. */
  clearAll(): void;
  /** The last ones, oldest first. */
  list(): DamagedRow[];
  count(): number;
}

/** `onFound` is called when a row is first found damaged. */
export function createDamagedRows(onFound: (row: DamagedRow) => void): DamagedRows {
  const rows = new Map<string, DamagedRow>();
  const idOf = ({ table, key }: Pick<DamagedRow, 'table' | 'key'>): string => `${table} ${key}`;
  return {
    record(row) {
      const id = idOf(row);
      if (!rows.has(id)) {
        const [oldest] = rows.keys();
        if (rows.size >= MAX_ROWS && oldest !== undefined) rows.delete(oldest);
        onFound(row);
      }
      rows.set(id, row);
    },
    clear: (row) => void rows.delete(idOf(row)),
    has: (row) => rows.has(idOf(row)),
    clearAll: () => rows.clear(),
    list: () => [...rows.values()].slice(-LIMITS.health.streams),
    count: () => rows.size,
  };
}

/** Advice for operators about damaged rows. */
export const REBUILD_ADVICE =
  'Check the log (npm run cli -- projections verify) and the accounts that can write to the database of the read models, then rebuild them: npm run cli -- projections rebuild';

/** A row is not used because it does not say what the log says. Safe to show to clients. */
export const readModelDamagedError = (table: string): TurnlogError =>
  new TurnlogError(
    'read_model_damaged',
    `A row of the read models, in the table ${table}, does not say what the log says, and is not used. An operator has to rebuild the read models.`,
    { retriable: true, retryAfterSeconds: 10 },
  );
