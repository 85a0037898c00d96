import type { StoredEvent } from '../../ports/eventStore.ts';
import { decodeEvent } from '../../eventlog/codec.ts';

const ENDS: ReadonlySet<string> = new Set([
  'session.turn_completed.v1',
  'session.turn_failed.v1',
  'session.turn_interrupted.v1',
]);

/** The number of the turn that an event ended; undefined for any other event. */
export const endOfTurn = (stored: StoredEvent): number | undefined =>
  ENDS.has(stored.type) ? (decodeEvent(stored).data as { turn: number }).turn : undefined;
