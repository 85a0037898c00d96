import type { HostClient } from './clientInternals.ts';
import type { Right } from './rights.ts';

/** One connection to the node in use. */
export interface Connection {
  client: HostClient;
  /** Aborted when the connection is given up. */
  lost: AbortSignal;
  /** To be called with everything that comes from the server. */
  heard(): void;
  /** How long the node may take to answer, by how long it took lately, in milliseconds. */
  patienceMs(): number;
}

export interface Connections {
  /** The connection to use, once there is one. Errors: `store_unavailable`, the signal's reason. */
  current(signal: AbortSignal): Promise<Connection>;
  /** Reports a call that failed. A doubtful node is looked at, and given up if it can't serve. */
  failed(connection: Connection, error: unknown): void;
  /** Notes that the user lacks a right, and puts it into words. */
  denied(right: Right, error: unknown): Error;
  /** Notes that the user was allowed to do what it asked for. */
  allowed(right: Right): void;
  /** One sentence on why the store can't be used now; undefined while it can. */
  trouble(): string | undefined;
  /** Aborted when the store is closed. */
  closed: AbortSignal;
  /** Whether the leader must answer: yes, unless the connection string prefers other nodes. */
  requiresLeader: boolean;
  close(): void;
}
