import { Pool } from 'pg';
import type {
  WebhookProgress,
  WebhookProgressReader,
  WebhookProgressStore,
} from '../../shared/webhooks/webhookProgress.ts';
import { connectionOptions, runInTransaction } from './connection.ts';
import { withDatabaseErrors, isMissing } from './failures.ts';
import { WEBHOOKS_LOCK } from './leases/locks.ts';
import { awaitLeaseSession, type LeaseWait } from './leases/leaseSession.ts';

const STATEMENT_MS = 5_000;
const CONNECTIONS = 2;

const SAVE = `INSERT INTO turnlog.webhook_progress (webhook_id, progress)
  SELECT webhook_id, progress FROM unnest($1::text[], $2::jsonb[]) AS new (webhook_id, progress)
  ON CONFLICT (webhook_id) DO UPDATE SET progress = excluded.progress`;

type Row = { webhook_id: string; progress: WebhookProgress };

/** Reads the progress that the delivering process writes. Opens without waiting for the server. */
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
 * Waits until this process holds the lease to deliver. Resolves with undefined if the signal aborts
 * first. The methods throw `store_unavailable`.
 */
export async function acquireWebhookLease(
  options: LeaseWait,
): Promise<WebhookProgressStore | undefined> {
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
          runInTransaction(client, async () => {
            const updated = [...changes].filter(([, progress]) => progress !== undefined);
            const removed = [...changes.keys()].filter((id) => changes.get(id) === undefined);
            await client.query(SAVE, [
              updated.map(([id]) => id),
              updated.map(([, progress]) => JSON.stringify(progress)),
            ]);
            await client.query('DELETE FROM turnlog.webhook_progress WHERE webhook_id = ANY ($1)', [
              removed,
            ]);
          }),
        ),
      ),
  };
}
