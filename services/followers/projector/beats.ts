import type { ActiveProjectionStore, ProjectorLag } from '../../../shared/ports/readModels.ts';

/**
 * Tells the other processes how far this projector is, each time it is called, unless it does not
 * know or the word before is still on its way.
 */
export function createBeats(
  store: Pick<ActiveProjectionStore, 'beat'>,
  lag: () => ProjectorLag | undefined,
): () => void {
  let beating: Promise<void> | undefined;
  return () => {
    const now = lag();
    if (now === undefined) return;
    // One that fails is followed by the next; a session that is lost is told otherwise.
    beating ??= store
      .beat(now)
      .catch(() => undefined)
      .finally(() => {
        beating = undefined;
      });
  };
}
