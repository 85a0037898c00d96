import { agentErasedError, originErasedError, sessionErasedError } from './errors.ts';
import { streamId, streamKind } from '../eventlog/streams.ts';
import type { Position } from '../ports/eventStore.ts';
import type { ReadModels } from '../ports/readModels.ts';
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
      inFlight.end(of('session_id'), sessionErasedError());
      return inFlight.end(({ origins }) => origins?.includes(id) === true, originErasedError());
    case 'agent':
      return inFlight.end(of('agent_id'), agentErasedError());
    // All its sessions are erased.
    default:
      return inFlight.end(of('account_id'), sessionErasedError());
  }
}

/**
 * Lets go of all that this process has in memory of an erased stream, and ends the runs that work on
 * it. May be done again.
 */
export function evictErased(
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

/** With more of them in a second, everything is let go of. */
const MOST = 1_000;

interface Noticing {
  readModels: Pick<ReadModels, 'listErasures'>;
  forget: (erased: ErasureRow) => void;
  /** Called where it can't be told what has been erased meanwhile. */
  forgetAll: () => void;
}

/**
 * Notices what anybody has erased, another replica or an operator's command, in the read models.
 * What it gives is to be called about once a second: it looks for what is new since the last time.
 * The first time it finds where the log's erasures end.
 */
export function createErasurePoller({
  readModels,
  forget,
  forgetAll,
}: Noticing): () => Promise<void> {
  let begun = false;
  let seen: Position | undefined;

  return async () => {
    const limit = begun ? MOST : 1;
    const rows = await readModels.listErasures({ downTo: begun ? seen : undefined, limit });
    const known = rows.at(-1)?.position === seen;
    // The last one that was seen is gone where the log is another one now.
    if (begun && !known && (seen !== undefined || rows.length === limit)) forgetAll();
    if (begun) for (const row of rows) if (row.position !== seen) forget(row);
    begun = true;
    seen = rows[0]?.position ?? seen;
  };
}
