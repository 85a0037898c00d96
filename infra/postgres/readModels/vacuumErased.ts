/**
 * Sees to it that no dead row holds what was erased: those of the read models are cleared, once for
 * all erasures that came together. The server's own vacuum comes only when a fifth of a table has
 * changed.
 */
import { INDEXED_TEXTS } from '../../../shared/features.ts';
import type { Version } from '../../../shared/readModels/version.ts';
import { connect } from '../connection.ts';
import { liveSchema } from './schema.ts';

/** From the first erasure on; a transaction that is older than it keeps its dead rows. */
const AFTER_MS = 30_000;
/** What is done by then stays done; a generation that is dropped waits no longer. */
const PURPOSE = { name: 'turnlog vacuum', statementMs: 20_000 } as const;

interface Clearing {
  /** To be called when an erasure was committed. Never throws. */
  erased(): void;
  /** Cuts off what is at work. */
  close(): Promise<void>;
}

interface Place {
  databaseUrl: string;
  version: Version;
  /** How long others are waited for, in milliseconds. */
  afterMs?: number | undefined;
}

/** Begins with what a process that ended in between may have left. What fails is tried again. */
export function createErasedVacuum({ databaseUrl, version, afterMs = AFTER_MS }: Place): Clearing {
  const namesOf = (tables: readonly string[]): string =>
    tables.map((table) => `${liveSchema(version)}.${table}`).join(', ');
  const others = namesOf(
    Object.keys(version.tables).filter((table) => !INDEXED_TEXTS.includes(table)),
  );
  const closing = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let clearing: Promise<void> | undefined;
  let again = false;

  /** Who does not own a table is warned by the server, and it is passed over. */
  async function clear(): Promise<void> {
    const { client, close } = await connect(databaseUrl, PURPOSE);
    const cutOff = (): void => void close();
    closing.signal.addEventListener('abort', cutOff);
    try {
      if (!closing.signal.aborted)
        await client.query(`VACUUM (SKIP_LOCKED, INDEX_CLEANUP OFF) ${others}`);
      if (!closing.signal.aborted)
        await client.query(`VACUUM (SKIP_LOCKED, INDEX_CLEANUP ON) ${namesOf(INDEXED_TEXTS)}`);
    } finally {
      closing.signal.removeEventListener('abort', cutOff);
      await close();
    }
  }

  async function clearAll(): Promise<void> {
    timer = undefined;
    again = false;
    await clear().catch(() => void (again = true));
    clearing = undefined;
    if (again) erased();
  }

  function erased(): void {
    if (clearing) again = true;
    else if (!closing.signal.aborted)
      timer ??= setTimeout(() => void (clearing = clearAll()), afterMs).unref();
  }

  erased();
  return {
    erased,
    async close() {
      closing.abort();
      clearTimeout(timer);
      await clearing;
    },
  };
}
