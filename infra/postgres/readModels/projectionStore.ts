import { isErasure } from '../../../shared/eventlog/eventTypes.ts';
import type { ActiveProjectionStore } from '../../../shared/ports/readModels.ts';
import type { Version } from '../../../shared/readModels/version.ts';
import { withDatabaseErrors } from '../failures.ts';
import { writerLock } from '../leases/locks.ts';
import { awaitLeaseSession } from '../leases/leaseSession.ts';
import { createClearing } from './clearing.ts';
import { completeFirst, dropRetired, ensureGeneration, refusedCheckpoint } from './generations.ts';
import { openGenerationWriter } from './generationWriter.ts';
import { dropOlderVersions } from './olderVersions.ts';
import { tellBeat } from './projectorBeat.ts';
import { VERSION } from './version.ts';

interface Options {
  databaseUrl: string;
  /** Ends the wait to become active. */
  signal: AbortSignal;
  /** Called with what kept it from becoming active; it goes on trying. */
  onFailure?: (error: unknown, retryInMs: number) => void;
  version?: Version;
  /** How long after an erasure dead rows are cleared, in milliseconds. */
  clearAfterMs?: number;
}

/**
 * Waits until this process is the active projector of the live read models, prepares the database
 * and opens them for writing. Resolves undefined when the signal aborted first.
 * Errors: `store_unavailable` when the server went away just then.
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
    const place = { version, stage: 'live' } as const;
    await withDatabaseErrors(() => session.run((client) => ensureGeneration(client, place)));
    const writer = await withDatabaseErrors(() => openGenerationWriter(session, place));
    const clearing = createClearing({ databaseUrl, version, afterMs: clearAfterMs });
    return {
      ...writer,
      async apply(events, reached) {
        const parked = await writer.apply(events, reached);
        if (events.some(({ type }) => isErasure(type))) clearing.erased();
        return parked;
      },
      async close() {
        await clearing.close();
        await writer.close();
      },
      lost: session.lost,
      beat: (lag) =>
        withDatabaseErrors(() => session.run((client) => tellBeat(client, version, lag))),
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
