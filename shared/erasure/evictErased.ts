import { agentErased, originErased, sessionErased } from './errors.ts';
import { streamId, streamKind } from '../eventlog/streams.ts';
import type { ErasureRow } from '../readModels/tables.ts';
import type { RunContext } from '../runs/context.ts';
import type { RunSubject } from '../runs/queueing/runsInFlight.ts';

type Erased = Pick<ErasureRow, 'stream' | 'account_id' | 'key_ids'>;
type Forgetting = Pick<RunContext, 'store' | 'sessions' | 'known'>;

/** The runs that are to end, and what they answer. */
function endRuns({ inFlight }: RunContext['sessions'], stream: string): void {
  const id = streamId(stream);
  const of = (whose: keyof RunSubject) => (subject: RunSubject) => subject[whose] === id;
  switch (streamKind(stream)) {
    case 'session':
      inFlight.end(of('session_id'), sessionErased());
      return inFlight.end(({ origins }) => origins?.includes(id) === true, originErased());
    case 'agent':
      return inFlight.end(of('agent_id'), agentErased());
    // All its sessions are erased.
    default:
      return inFlight.end(of('account_id'), sessionErased());
  }
}

/**
 * Lets go of all that this process has in memory of an erased stream, and ends the runs that work on
 * it. May be done again.
 */
export function forgetErased(
  { store, sessions, known }: Forgetting,
  { stream, key_ids }: Erased,
): void {
  store.keys.forget(key_ids);
  endRuns(sessions, stream);
  const id = streamId(stream);
  if (streamKind(stream) !== 'session') return known.forget?.();
  sessions.memory.delete(id);
  for (const [fork, { origins }] of sessions.memory.entries())
    if (origins.some(({ session_id }) => session_id === id)) sessions.memory.delete(fork);
  sessions.leftOpen.settle({ session_id: id });
}
