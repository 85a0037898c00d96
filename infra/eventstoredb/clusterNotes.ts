import { hostName, type Host, type Target } from './connectionString.ts';
import { chooseMember, troubleOf, type Member } from './members.ts';

/** What a node says of its cluster, while that node answers. */
export interface ClusterNotes {
  /** Notes why a host can't be used. Returns the node to use, where there is one. */
  note(host: Host, members: readonly Member[]): Host | undefined;
  /** The host says nothing any more. */
  forget(host: Host): void;
  /** A node can be used. */
  clear(): void;
  /** Why none of the nodes can be used, in a sentence. */
  trouble(): string | undefined;
}

export function createClusterNotes(preference: Target['preference']): ClusterNotes {
  let noted: { by: string; trouble: string } | undefined;

  function forget(host: Host): void {
    if (noted?.by === hostName(host)) noted = undefined;
  }

  return {
    note(host, members) {
      const chosen = chooseMember(members, preference);
      if (!chosen && members.length > 1)
        noted = { by: hostName(host), trouble: troubleOf(members) };
      else forget(host);
      return chosen;
    },
    forget,
    clear: () => void (noted = undefined),
    trouble: () => noted?.trouble,
  };
}
