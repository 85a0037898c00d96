/**
 * Removes dead rows with erased data from the read models by a VACUUM, one for all erasures within half
 * a minute. Autovacuum would run only after a fifth of a table has changed.
 */
import { INDEXED_TEXTS } from '../../../shared/features.ts';
import type { Version } from '../../../shared/readModels/version.ts';
import { connectPostgres } from '../connection.ts';
import { liveSchema } from './schema.ts';

/** The delay after the first erasure. Transactions older than an erasure keep its dead rows. */
const AFTER_MS = 30_000;
/** A VACUUM that times out keeps what it has done. Dropping a generation waits at most this long. */
const PURPOSE = { name: 'turnlog vacuum', statementMs: 20_000 } as const;

interface ErasedVacuum {
  /** Call it after an erasure was committed. Never throws. */
  erased(): void;
  /** Cancels a running VACUUM. */
  close(): Promise<void>;
}

interface VacuumOptions {
  databaseUrl: string;
  version: Version;
  /** How long to wait for further erasures, in milliseconds. */
  afterMs?: number | undefined;
}

/** Starts with a VACUUM for erasures of a previous process. Failures are retried. */
export function createErasedVacuum({
  databaseUrl,
  version,
  afterMs = AFTER_MS,
}: VacuumOptions): ErasedVacuum {
  const namesOf = (tables: readonly string[]): string =>
    tables.map((table) => `${liveSchema(version)}.${table}`).join(', ');
  const others = namesOf(
    Object.keys(version.tables).filter((table) => !INDEXED_TEXTS.includes(table)),
  );
  const closing = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let vacuuming: Promise<void> | undefined;
  let needsRerun = false;

  /** The server skips tables that the role does not own, with a warning. */
  async function vacuum(): Promise<void> {
    const { client, close } = await connectPostgres(databaseUrl, PURPOSE);
    const cancel = (): void => void close();
    closing.signal.addEventListener('abort', cancel);
    try {
      if (!closing.signal.aborted)
        await client.query(`VACUUM (SKIP_LOCKED, INDEX_CLEANUP OFF) ${others}`);
      if (!closing.signal.aborted)
        await client.query(`VACUUM (SKIP_LOCKED, INDEX_CLEANUP ON) ${namesOf(INDEXED_TEXTS)}`);
    } finally {
      closing.signal.removeEventListener('abort', cancel);
      await close();
    }
  }

  async function vacuumAll(): Promise<void> {
    timer = undefined;
    needsRerun = false;
    await vacuum().catch(() => void (needsRerun = true));
    vacuuming = undefined;
    if (needsRerun) erased();
  }

  function erased(): void {
    if (vacuuming) needsRerun = true;
    else if (!closing.signal.aborted)
      timer ??= setTimeout(() => void (vacuuming = vacuumAll()), afterMs).unref();
  }

  erased();
  return {
    erased,
    async close() {
      closing.abort();
      clearTimeout(timer);
      await vacuuming;
    },
  };
}
