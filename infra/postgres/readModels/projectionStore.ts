import type { ActiveProjectionStore } from '../../../shared/ports/readModels.ts';
import { guarded } from '../failures.ts';
import { writerLock } from '../locks.ts';
import { awaitWriterSession } from '../writerSession.ts';
import {
  completeFirstCopy,
  dropRetired,
  ensureCopy,
  refusedCheckpoint,
  VERSION,
} from './copies.ts';
import { openCopyWriter } from './copyWriter.ts';
import { dropOlderVersions } from './olderVersions.ts';

interface Options {
  databaseUrl: string;
  /** Ends the wait to become active. */
  signal: AbortSignal;
  /** Called with what kept it from becoming active; it goes on trying. */
  onFailure?: (error: unknown, retryInMs: number) => void;
}

/**
 * Waits until this process is the active projector of the live read models, prepares the database and opens them for writing.
 * Resolves undefined when the signal aborted first. Errors: `store_unavailable` when the server went away just then.
 */
export async function openPostgresProjectionStore({
  databaseUrl,
  signal,
  onFailure = () => undefined,
}: Options): Promise<ActiveProjectionStore | undefined> {
  const session = await awaitWriterSession({
    databaseUrl,
    name: 'turnlog projector',
    lock: writerLock(VERSION, 'live'),
    signal,
    onFailure,
  });
  if (!session) return undefined;
  try {
    await guarded(() => session.run((client) => ensureCopy(client, 'live')));
    const writer = await guarded(() => openCopyWriter(session, 'live'));
    return {
      ...writer,
      lost: session.lost,
      refused: () => guarded(() => session.run(refusedCheckpoint)),
      complete: () =>
        guarded(() =>
          session.run(async (client) => {
            await completeFirstCopy(client);
            await dropRetired(client);
            await dropOlderVersions(client);
          }),
        ),
    };
  } catch (error) {
    await session.close();
    throw error;
  }
}
