import type { EventLog, Position } from '../../shared/ports/eventStore.ts';

/** A position is taken as it stands: the adapter of the log knows which it has. */
export const parsePositionOption = (text: string): Position => text as Position;

/**
 * Asks the log whether it can be begun after a position that an operator named, before anything is
 * done. Errors: `position_invalid`, `store_unavailable`.
 */
export async function requirePosition(
  log: Pick<EventLog, 'subscribe'>,
  after: Position | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (after === undefined) return;
  for await (const _first of log.subscribe({ after, batchSize: 1, signal })) return;
}
