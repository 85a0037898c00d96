import type { Position } from '../../shared/ports/eventStore.ts';
import type { HostClient } from './clientInternals.ts';
import { collect } from './collect.ts';
import { eventPosition } from './positions.ts';
import { lastRecordRequest } from './readRequests.ts';

interface Asked {
  requiresLeader: boolean;
  signal: AbortSignal;
  heard?: () => void;
}

/**
 * The position of the last record, whosever it is; undefined in an empty log. It needs the node to
 * be alive, to be the leader where that is asked for, to have a quorum, and the user to have every
 * right that a follower of the log needs.
 */
export async function endOfLog(
  client: HostClient,
  { requiresLeader, signal, heard = () => undefined }: Asked,
): Promise<Position | undefined> {
  const { events } = await collect(client, lastRecordRequest(), { requiresLeader, signal, heard });
  const [last] = events;
  return last && eventPosition(BigInt(last.getCommitPosition()));
}
