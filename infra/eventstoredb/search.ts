import { openHostClient, type HostClient } from './clientInternals.ts';
import { createClusterNotes, type ClusterNotes } from './clusterNotes.ts';
import { KEEP_ALIVE_MS, type Host, type Target } from './connectionString.ts';
import { createHosts, type Hosts } from './hosts.ts';
import { membersOf, type Member } from './members.ts';
import { within } from './within.ts';

/** How long a node may take to tell what it knows of the others. */
const GOSSIP_LIMIT_MS = 1_000;

/** What a search for the node to use knows. */
export interface Search {
  target: Target;
  /** Whom to ask for the others. */
  asked: Hosts;
  /** Whom to use: a node that is asked and answers may still not be of use. */
  visited: Hosts;
  cluster: ClusterNotes;
  /** Ends the search. */
  closed: AbortSignal;
  /** A new connection. */
  open(host: Host): HostClient;
  /** What the node knows of its cluster. */
  membersKnownTo(client: HostClient): Promise<Member[]>;
  /** Something new is known of a host: it may be tried at once. */
  hint(host: Host): void;
}

export function createSearch(target: Target, closed: AbortSignal): Search {
  const asked = createHosts(target.seeds);
  const visited = createHosts(target.cluster ? [] : target.seeds);
  let opened = 0;

  return {
    target,
    asked,
    visited,
    cluster: createClusterNotes(target.preference),
    closed,
    open(host) {
      // Channels that are configured alike share a socket, which may be the silent one: each is
      // configured otherwise.
      opened = (opened + 1) % 1_000;
      return openHostClient(target.of(host, KEEP_ALIVE_MS + opened));
    },
    membersKnownTo: async (client) =>
      membersOf(await within(GOSSIP_LIMIT_MS, closed, (signal) => client.gossip(signal))),
    hint(host) {
      for (const hosts of [asked, visited]) {
        hosts.learn(host);
        hosts.forgive(host);
      }
    },
  };
}
