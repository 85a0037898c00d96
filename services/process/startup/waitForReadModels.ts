import type { CommandContext } from '../../../shared/commandHandling/context.ts';
import { logChangedError } from '../../../shared/lib/errors/turnlogError.ts';
import type { EventLog, Position } from '../../../shared/ports/eventStore.ts';
import { retryUntilStoreAvailable } from './retryUntilStoreAvailable.ts';

/** How long the read models are waited for before the log is asked again where it ends. */
const LOOK_MS = 1_000;

/**
 * Resolves once the read models, which another process may keep up to date, show everything that
 * there was when it was asked. Errors: the signal's reason.
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
  const endNow = (): Promise<Position | undefined> =>
    retryUntilStoreAvailable(() => store.head(), logger, signal);
  let end = await endNow();
  while (end !== undefined && !(await readModels.untilShown(end, LOOK_MS))) {
    signal.throwIfAborted();
    const reason = logChanged();
    if (reason !== undefined) throw logChangedError(reason);
    // The end may have been that of a node which had fallen behind: what is no longer in the log is
    // not waited for.
    const now = await endNow();
    if (now === undefined || now < end) end = now;
  }
  // Where the log is empty there is nothing to show, but the first generation of the read models
  // may still have to be made.
  await retryUntilStoreAvailable(() => readModels.listParkedStreams(1), logger, signal);
}
