import type { Position } from '../../shared/ports/eventStore.ts';
import type { HostClient } from './clientInternals.ts';
import { collect } from './collect.ts';
import { eventPosition } from './positions.ts';
import { lastRecordRequest } from './readRequests.ts';
import { Silence } from './trouble.ts';

/**
 * Runs a call that must not take longer. Rejects with Silence when it does, with the signal's reason when that aborts; the
 * call is cancelled then.
 */
export async function within<Result>(
  limitMs: number,
  signal: AbortSignal,
  call: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const limit = new AbortController();
  const abort = (): void => limit.abort(signal.reason);
  const silence = (): void => limit.abort(new Silence(`no answer within ${limitMs} ms`));
  // What came while this process was busy lies in the socket's buffer: it is read before the time counts as over.
  const timer = setTimeout(() => setImmediate(silence), limitMs);
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { once: true });
  try {
    return await call(limit.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}

interface Asked {
  requiresLeader: boolean;
  signal: AbortSignal;
  heard?: () => void;
}

/**
 * The place of the last record, whosever it is; undefined in an empty log. It needs the node to be alive, to be the leader
 * where that is asked for, to have a quorum, and the user to have every right that a follower of the log needs.
 */
export async function endOfLog(
  client: HostClient,
  { requiresLeader, signal, heard = () => undefined }: Asked,
): Promise<Position | undefined> {
  const { events } = await collect(client, lastRecordRequest(), { requiresLeader, signal, heard });
  const [last] = events;
  return last && eventPosition(BigInt(last.getCommitPosition()));
}
