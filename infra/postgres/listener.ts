import type { Client } from 'pg';
import { createBackoff } from '../../shared/lib/time/backoff.ts';
import { sleepUntilAborted } from '../../shared/lib/time/sleep.ts';
import { connectPostgres, type PostgresConnection } from './connection.ts';

const STATEMENT_MS = 2_000;
/** The interval of the queries that detect a dead connection, which would deliver no more notifications. */
const HEARTBEAT_MS = 2_000;
const PAUSES = { firstMs: 50, longestMs: 2_000, spread: [0.5, 1] } as const;

interface Listener {
  name: 'turnlog broadcast' | 'turnlog listener';
  /** Starts to listen on a new connection. */
  begin: (connection: PostgresConnection) => Promise<void>;
  /** Queries the server while the connection lasts. */
  beat: (client: Client) => Promise<unknown>;
  /** Called when a connection ends, or could not begin. */
  onEnd: () => void;
  signal: AbortSignal;
}

/** Keeps a dedicated connection for notifications until the signal aborts; never rejects. */
export async function listenUntilAborted(
  databaseUrl: string,
  { name, begin, beat, onEnd, signal }: Listener,
): Promise<void> {
  const pauses = createBackoff(PAUSES);

  async function listenOnce(): Promise<void> {
    const connection = await connectPostgres(databaseUrl, { name, statementMs: STATEMENT_MS });
    try {
      await begin(connection);
      pauses.reset();
      const stopped = AbortSignal.any([connection.ended, signal]);
      while (!stopped.aborted) {
        await sleepUntilAborted(HEARTBEAT_MS, { signal: stopped, ref: false });
        if (!stopped.aborted) await beat(connection.client);
      }
    } finally {
      onEnd();
      await connection.close();
    }
  }

  while (!signal.aborted) {
    await listenOnce().catch(() => undefined);
    if (!signal.aborted) await sleepUntilAborted(pauses.next(), { signal, ref: false });
  }
}
