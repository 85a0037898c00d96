import type { Client } from 'pg';
import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import { isPositionFormat } from '../../../shared/eventlog/identity/positions.ts';
import { createPositionWaiters } from '../../../shared/projections/positionWaiters.ts';
import { connect } from '../connection.ts';
import { isMissing } from '../failures.ts';
import { readersLock } from '../leases/locks.ts';
import { keyOf, ROW } from './generations.ts';
import { createOtherVersions } from './otherVersions.ts';
import { channelOf, VERSION, VERSIONS_CHANNEL } from './schema.ts';

const CHANNEL = channelOf(VERSION);

const STATEMENT_MS = 2000;
/**
 * How often the connection is tried: one that has died without a word would never tell anything
 * again.
 */
const HEARTBEAT_MS = 2000;
const PAUSES = { firstMs: 50, longestMs: 2000, spread: [0.5, 1] } as const;

interface Told {
  /** What the live generation shows everything up to; undefined before there is one. */
  position: Position | undefined;
  /** Why the log is not followed. */
  logChanged: string | undefined;
}

/** What is told in the row of the live generation. Errors: what pg throws. */
async function readRow(client: Client): Promise<Told> {
  try {
    const { rows } = await client.query<{ position: Position | null; log_changed: string | null }>(
      `SELECT position, log_changed FROM ${ROW}`,
      keyOf({ version: VERSION, stage: 'live' }),
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
 * Follows the checkpoint of the live generation on one connection of its own: told by the server
 * with each commit, and read once after every (re)connection, because what was told meanwhile is
 * lost. While it is not connected, waits run into their limit.
 */
export function createFollower(databaseUrl: string) {
  const closing = new AbortController();
  const waiters = createPositionWaiters();
  let logChanged: string | undefined;
  const others = createOtherVersions();
  /** How many positions the server has told. */
  let told = 0;
  let last: Promise<unknown> = Promise.resolve();

  /** A connection is asked one thing after the other, also while it tells much. */
  function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = last.then(work);
    last = done.catch(() => undefined);
    return done;
  }

  const look = (client: Client): Promise<void> => inTurn(() => lookAt(client));
  const refresh = (client: Client): Promise<void> => inTurn(() => others.refresh(client));

  function hear(channel: string, payload: string, client: Client): void {
    if (channel === VERSIONS_CHANNEL) return void refresh(client).catch(() => undefined);
    if (channel !== CHANNEL) return others.hear(channel, payload);
    if (!isPositionFormat(payload)) return void look(client).catch(() => undefined);
    told += 1;
    waiters.show(payload as Position);
  }

  async function lookAt(client: Client): Promise<void> {
    const toldBefore = told;
    const { position, logChanged: reason } = await readRow(client);
    logChanged = reason;
    // A position that arrives with the answer is heard before the answer is: it is the newer one.
    if (told !== toldBefore) return;
    if (position === undefined) waiters.reset();
    else waiters.show(position);
  }

  /** One connection, until it breaks or the follower is closed. Errors: what pg throws. */
  async function follow(onConnected: () => void): Promise<void> {
    const { client, ended, close } = await connect(databaseUrl, {
      name: 'turnlog listener',
      statementMs: STATEMENT_MS,
    });
    try {
      client.on('notification', ({ channel, payload = '' }) => hear(channel, payload, client));
      await client.query(`SELECT pg_advisory_lock_shared(${readersLock(VERSION.number)})`);
      await client.query(`LISTEN ${CHANNEL}; LISTEN ${VERSIONS_CHANNEL}`);
      await look(client);
      // Those of other releases are to know of this reader before it answers anybody.
      await inTurn(() => client.query(`NOTIFY ${VERSIONS_CHANNEL}`));
      onConnected();
      const over = AbortSignal.any([ended, closing.signal]);
      while (!over.aborted) {
        await sleepUntilAborted(HEARTBEAT_MS, { signal: over, ref: false });
        if (!over.aborted) await refresh(client);
      }
    } finally {
      others.forget();
      await close();
    }
  }

  async function followForEver(): Promise<void> {
    const { signal } = closing;
    const pauses = createBackoff(PAUSES);
    while (!signal.aborted) {
      await follow(pauses.reset).catch(() => undefined);
      if (signal.aborted) return;
      await sleepUntilAborted(pauses.next(), { signal, ref: false });
    }
  }

  const following = followForEver();

  return {
    logChanged: (): string | undefined => logChanged,
    /**
     * Whether the version of this release shows the position; what other releases answer from is
     * waited for as well, where it is followed.
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
      await following;
    },
  };
}
