import type { Erasure } from '../domain/schema.ts';
import type { SessionEvent } from './events.ts';

/** What erases a session, once; an open turn ends with it. */
export function erasureEvents(
  data: Erasure,
  state: { status: string; turn?: number },
): SessionEvent[] {
  if (state.status === 'erased') return [];
  const erased: SessionEvent = { type: 'session.erased.v1', data };
  if (state.status !== 'running') return [erased];
  const end = { turn: state.turn!, reason: 'cancelled' } as const;
  return [{ type: 'session.turn_interrupted.v1', data: end }, erased];
}
