import type { CommandContext } from '../../../shared/commandHandling/context.ts';
import { logChangedError } from '../../../shared/lib/errors/turnlogError.ts';
import type { EventLog, Position } from '../../../shared/ports/eventStore.ts';
import { retryUntilStoreAvailable } from './retryUntilStoreAvailable.ts';

/** How long to wait for the read models before reading the end of the log again. */
const POLL_MS = 1_000;

/**
 * Resolves once the read models, which another process may keep up to date, show every event that
 * was in the log at the time of the call.
 */
export async function waitForReadModels(
  {
    store,
    readModels,
    logger,
  }: Pick<CommandContext, 'readModels' | 'logger'> & { store: Pick<EventLog, 'head'> },
  signal: AbortSignal,
  logChanged: () => string | undefined = () => undefined,
): Promise<void> {
  const readEnd = (): Promise<Position | undefined> =>
    retryUntilStoreAvailable(() => store.head(), logger, signal);
  let end = await readEnd();
  while (end !== undefined && !(await readModels.untilShown(end, POLL_MS))) {
    signal.throwIfAborted();
    const reason = logChanged();
    if (reason !== undefined) throw logChangedError(reason);
    // The node that reported the end may have fallen behind; don't wait for events that are gone.
    const newEnd = await readEnd();
    if (newEnd === undefined || newEnd < end) end = newEnd;
  }
  // For an empty log, this waits until the first generation of the read models exists.
  await retryUntilStoreAvailable(() => readModels.listParkedStreams(1), logger, signal);
}
