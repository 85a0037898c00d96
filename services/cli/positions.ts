import type { EventLog, Position } from '../../shared/ports/eventStore.ts';

/** Any text: only the adapter of the log can validate a position. */
export const parsePositionOption = (text: string): Position => text as Position;

/** Rejects with `position_invalid` unless the log can be read after that position. */
export async function requirePosition(
  log: Pick<EventLog, 'subscribe'>,
  after: Position | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (after === undefined) return;
  for await (const _first of log.subscribe({ after, batchSize: 1, signal })) return;
}
