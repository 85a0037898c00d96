import type { Client } from 'pg';
import { isErasure } from '../../../shared/eventlog/eventTypes.ts';
import { repeatUntilAborted } from '../../../shared/lib/concurrency/repeatUntilAborted.ts';
import type { ActiveProjectionStore, ProjectorLag } from '../../../shared/ports/readModels.ts';
import type { Version } from '../../../shared/readModels/version.ts';
import { withDatabaseErrors } from '../failures.ts';
import { writerLock } from '../leases/locks.ts';
import { awaitLeaseSession, type LeaseSession } from '../leases/leaseSession.ts';
import { createErasedVacuum } from './vacuumErased.ts';
import {
  completeFirst,
  dropOlderVersions,
  dropRetired,
  dropUnerasedBuilding,
  ensureGeneration,
  refusedCheckpoint,
} from './generations.ts';
import { openGenerationWriter } from './generationWriter.ts';
import { VERSION } from './schema.ts';

interface Options {
  databaseUrl: string;
  /** Ends the wait for the lease. */
  signal: AbortSignal;
  /** Called with each error while it waits for the lease. It keeps trying. */
  onFailure?: (error: unknown, retryInMs: number) => void;
  version?: Version;
  /** The delay of the vacuum after an erasure, in milliseconds. */
  clearAfterMs?: number;
}

/** How often the generation of a running rebuild is examined again after an erasure, until it has ended. */
const EXAMINE_MS = 2_000;

/**
 * Drops what an interrupted rebuild has left, once an erasure was applied that it had not come to. Begins
 * with the erasures of a previous process. `erased` never throws.
 */
function createLeftoverCleanup(session: LeaseSession, version: Version): { erased(): void } {
  let examining: Promise<void> | undefined;
  const examine = (): Promise<void> =>
    repeatUntilAborted({
      run: async () =>
        (await session.run((client) => dropUnerasedBuilding(client, version)))
          ? 'stop'
          : EXAMINE_MS,
      onFailure: () => EXAMINE_MS,
      signal: session.lost,
      ref: false,
    }).finally(() => (examining = undefined));
  const erased = (): void => void (examining ??= examine());
  erased();
  return { erased };
}

async function recordBeat(
  client: Client,
  { number }: Version,
  { events, ms }: ProjectorLag,
): Promise<void> {
  await client.query(
    `INSERT INTO turnlog.projector_beats (version, beaten_at, lag_events, lag_ms) VALUES ($1, clock_timestamp(), $2, $3)
     ON CONFLICT (version) DO UPDATE SET
       beaten_at = excluded.beaten_at, lag_events = excluded.lag_events, lag_ms = excluded.lag_ms`,
    [number, events, ms],
  );
}

/**
 * Waits until this process is the active projector, creates the live generation if needed and opens it
 * for writing. Resolves undefined if the signal aborts first. Throws `store_unavailable` if the
 * connection is lost meanwhile.
 */
export async function openPostgresProjectionStore({
  databaseUrl,
  signal,
  onFailure = () => undefined,
  version = VERSION,
  clearAfterMs,
}: Options): Promise<ActiveProjectionStore | undefined> {
  const session = await awaitLeaseSession({
    databaseUrl,
    name: 'turnlog projector',
    lock: writerLock(version.number, 'live'),
    signal,
    onFailure,
  });
  if (!session) return undefined;
  try {
    const slot = { version, stage: 'live' } as const;
    await withDatabaseErrors(() => session.run((client) => ensureGeneration(client, slot)));
    const writer = await withDatabaseErrors(() => openGenerationWriter(session, slot));
    const vacuum = createErasedVacuum({ databaseUrl, version, afterMs: clearAfterMs });
    const leftovers = createLeftoverCleanup(session, version);
    return {
      ...writer,
      async apply(events, reached) {
        try {
          return await writer.apply(events, reached);
        } finally {
          // A batch that fails may have committed an erasure in an earlier part.
          if (events.some(({ type }) => isErasure(type))) {
            vacuum.erased();
            leftovers.erased();
          }
        }
      },
      async close() {
        await vacuum.close();
        await writer.close();
      },
      lost: session.lost,
      beat: (lag) =>
        withDatabaseErrors(() => session.run((client) => recordBeat(client, version, lag))),
      refused: () =>
        withDatabaseErrors(() => session.run((client) => refusedCheckpoint(client, version))),
      complete: () =>
        withDatabaseErrors(() =>
          session.run(async (client) => {
            await completeFirst(client, version);
            await dropRetired(client, version);
            await dropOlderVersions(client, version);
          }),
        ),
    };
  } catch (error) {
    await session.close();
    throw error;
  }
}
