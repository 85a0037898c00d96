import type { HostClient } from './clientInternals.ts';
import { endOfLog } from './endOfLog.ts';
import { chooseMember, membersOf } from './members.ts';
import { NotReady } from './serverErrors.ts';
import { within } from './within.ts';

interface Asked {
  limitMs: number;
  signal: AbortSignal;
  heard?: () => void;
}

/** Resolves when the node can serve; rejects with what keeps it from that. */
export type AskIfServing = (client: HostClient, asked: Asked) => Promise<void>;

/**
 * Asks for the end of the log. Where the leader has to answer, that takes a node that is alive,
 * leads, has a quorum, and lets the user read all. Another node answers also when it was cut off
 * and knows of nothing new: it is asked for its cluster, too.
 */
export const createAskIfServing =
  (requiresLeader: boolean): AskIfServing =>
  (client, { limitMs, signal, heard }) =>
    within(limitMs, signal, async (limit) => {
      await endOfLog(client, { requiresLeader, signal: limit, ...(heard && { heard }) });
      if (requiresLeader) return;
      const known = membersOf(await client.gossip(limit));
      if (known.length > 1 && chooseMember(known, 'leader') === undefined)
        throw new NotReady('the node knows of no leader');
    });
