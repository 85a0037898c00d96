import { createSerialQueue } from '../../../shared/lib/concurrency/serialQueue.ts';
import type { Client } from 'pg';
import type { Position } from '../../../shared/ports/eventStore.ts';
import { isPositionFormat } from '../../../shared/eventlog/identity/positions.ts';
import { createPositionWaiters } from '../../../shared/projections/positionWaiters.ts';
import { listenUntilAborted } from '../listener.ts';
import { isMissing } from '../failures.ts';
import { readersLock } from '../leases/locks.ts';
import { slotKey, ROW } from './generations.ts';
import { createOtherVersions } from './otherVersions.ts';
import { channelOf, VERSION, VERSIONS_CHANNEL } from './schema.ts';

const CHANNEL = channelOf(VERSION);

interface LiveRow {
  /** The live generation shows everything up to here; undefined before there is one. */
  position: Position | undefined;
  /** Why the projector does not follow the log. */
  logChanged: string | undefined;
}

/** Reads the row of the live generation. Throws pg's errors. */
async function readLiveRow(client: Client): Promise<LiveRow> {
  try {
    const { rows } = await client.query<{ position: Position | null; log_changed: string | null }>(
      `SELECT position, log_changed FROM ${ROW}`,
      slotKey({ version: VERSION, stage: 'live' }),
    );
    return {
      position: rows[0]?.position ?? undefined,
      logChanged: rows[0]?.log_changed ?? undefined,
    };
  } catch (error) {
    if (isMissing(error)) return { position: undefined, logChanged: undefined };
    throw error;
  }
}

/**
 * Follows the checkpoint of the live generation on a dedicated connection. The server notifies it of
 * each commit. The checkpoint is read after every (re)connection, because notifications sent in between
 * are lost. While disconnected, waits end with their timeout.
 */
export function createFollower(databaseUrl: string) {
  const closing = new AbortController();
  const waiters = createPositionWaiters();
  let logChanged: string | undefined;
  const others = createOtherVersions();
  /** The number of positions received. */
  let notifications = 0;
  /** The queries on the connection, also while many notifications arrive. */
  const queue = createSerialQueue();

  /**
   * Returns a function that queues work unless it is queued and has not begun: any role can send
   * notifications faster than they are handled.
   */
  function queuedOnce(work: () => Promise<void>): () => void {
    let isQueued = false;
    return () => {
      if (isQueued) return;
      isQueued = true;
      void queue
        .run(() => {
          isQueued = false;
          return work();
        })
        .catch(() => undefined);
    };
  }

  function receiveFrom(client: Client): void {
    const queueRow = queuedOnce(() => readAndShow(client));
    const queueVersions = queuedOnce(() => others.refresh(client));
    client.on('notification', ({ channel, payload = '' }) => {
      if (channel === VERSIONS_CHANNEL) return queueVersions();
      if (channel !== CHANNEL) return others.receive(channel, payload);
      if (!isPositionFormat(payload)) return queueRow();
      notifications += 1;
      waiters.show(payload as Position);
    });
  }

  async function readAndShow(client: Client): Promise<void> {
    const notificationsBefore = notifications;
    const { position, logChanged: reason } = await readLiveRow(client);
    logChanged = reason;
    // A notification received during the query has the newer position.
    if (notifications !== notificationsBefore) return;
    if (position === undefined) waiters.reset();
    else waiters.show(position);
  }

  const listening = listenUntilAborted(databaseUrl, {
    name: 'turnlog listener',
    async begin({ client }) {
      receiveFrom(client);
      await client.query(`SELECT pg_advisory_lock_shared(${readersLock(VERSION.number)})`);
      await client.query(`LISTEN ${CHANNEL}; LISTEN ${VERSIONS_CHANNEL}`);
      await queue.run(() => readAndShow(client));
      // Processes of other releases must know this reader before it answers queries.
      await queue.run(() => client.query(`NOTIFY ${VERSIONS_CHANNEL}`));
    },
    beat: (client) => queue.run(() => others.refresh(client)),
    onEnd: others.forget,
    signal: closing.signal,
  });

  return {
    logChanged: (): string | undefined => logChanged,
    /**
     * Resolves true once the version of this release shows the position. Also waits for the versions
     * that other releases answer from.
     */
    async untilShown(position: Position, timeoutMs: number): Promise<boolean> {
      if (closing.signal.aborted) return false;
      const [shown] = await Promise.all([
        waiters.untilShown(position, timeoutMs),
        others.untilShown(position, timeoutMs),
      ]);
      return shown;
    },
    async close(): Promise<void> {
      closing.abort();
      waiters.close();
      others.forget();
      await listening;
    },
  };
}
