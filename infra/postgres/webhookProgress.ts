import { Pool } from 'pg';
import type {
  WebhookProgress,
  WebhookProgressReader,
  WebhookProgressStore,
} from '../../shared/webhooks/webhookProgress.ts';
import { connectionOptions, transaction } from './connection.ts';
import { withDatabaseErrors, isMissing } from './failures.ts';
import { WEBHOOKS_LOCK } from './leases/locks.ts';
import { awaitLeaseSession } from './leases/leaseSession.ts';

const STATEMENT_MS = 5_000;
const CONNECTIONS = 2;

const SAVE = `INSERT INTO turnlog.webhook_progress (webhook_id, progress)
  SELECT webhook_id, progress FROM unnest($1::text[], $2::jsonb[]) AS new (webhook_id, progress)
  ON CONFLICT (webhook_id) DO UPDATE SET progress = excluded.progress`;

type Row = { webhook_id: string; progress: WebhookProgress };

/** Reads the progress that one of the processes writes. Opens without waiting for the server. */
export function openPostgresWebhookProgress(
  databaseUrl: string,
): WebhookProgressReader & { close(): Promise<void> } {
  const pool = new Pool({
    ...connectionOptions(databaseUrl, { name: 'turnlog webhooks', statementMs: STATEMENT_MS }),
    max: CONNECTIONS,
    allowExitOnIdle: true,
  });
  pool.on('error', () => undefined);

  async function find(webhookId: string): Promise<WebhookProgress | undefined> {
    const sql = 'SELECT progress FROM turnlog.webhook_progress WHERE webhook_id = $1';
    try {
      return (await pool.query<Row>(sql, [webhookId])).rows[0]?.progress;
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  return {
    find: (webhookId) => withDatabaseErrors(() => find(webhookId)),
    close: async () => {
      if (!pool.ending) await pool.end();
    },
  };
}

/**
 * Waits until this process is the one that delivers; undefined when the signal aborted first. Its
 * methods' errors: `store_unavailable`.
 */
export async function acquireWebhookLease(options: {
  databaseUrl: string;
  signal: AbortSignal;
  /** Called with what kept it from that; it goes on trying. */
  onFailure: (error: unknown, retryInMs: number) => void;
}): Promise<WebhookProgressStore | undefined> {
  const session = await awaitLeaseSession({
    ...options,
    name: 'turnlog webhooks',
    lock: WEBHOOKS_LOCK,
  });
  if (!session) return undefined;
  return {
    lost: session.lost,
    close: session.close,
    load: () =>
      withDatabaseErrors(() =>
        session.run(async (client) => {
          const { rows } = await client.query<Row>('SELECT * FROM turnlog.webhook_progress');
          return new Map(rows.map(({ webhook_id, progress }) => [webhook_id, progress]));
        }),
      ),
    save: (changes) =>
      withDatabaseErrors(() =>
        session.run((client) =>
          transaction(client, async () => {
            const kept = [...changes].filter(([, progress]) => progress !== undefined);
            const gone = [...changes.keys()].filter((id) => changes.get(id) === undefined);
            await client.query(SAVE, [
              kept.map(([id]) => id),
              kept.map(([, progress]) => JSON.stringify(progress)),
            ]);
            await client.query('DELETE FROM turnlog.webhook_progress WHERE webhook_id = ANY ($1)', [
              gone,
            ]);
          }),
        ),
      ),
  };
}
