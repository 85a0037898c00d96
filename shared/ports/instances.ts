/**
 * The instances port: which processes are alive, by one clock that they all share. Every adapter
 * passes test/contracts/instances.ts.
 */

/** How often an instance says that it is alive, in milliseconds. */
export const BEAT_MS = 5_000;
/** An instance that has not said so for this long is taken for dead, in milliseconds. */
export const DEAD_AFTER_MS = 30_000;

export interface DeadInstance {
  instance_id: string;
  /** UTC, ISO 8601. */
  last_beat_at: string;
}

/** The list at one moment. */
export interface InstanceList {
  /** By the list's clock, in milliseconds since the epoch. */
  now: number;
  /** Who is in it, alive or dead. */
  ids: ReadonlySet<string>;
}

export interface Registration {
  /** Takes the instance out of the list: it ends in order, and has left nothing open. */
  end(): Promise<void>;
}

export interface Instances {
  /**
   * Enters the instance in the list and beats from then on. A beat that fails is followed by the
   * next; an instance that was forgotten while it could not beat enters itself again.
   * Errors: `store_unavailable` when it can't be entered now.
   */
  register(instanceId: string): Promise<Registration>;
  /**
   * The instances whose last beat is older than that, oldest first. Errors: `store_unavailable`.
   */
  listDeadInstances(olderThanMs: number): Promise<DeadInstance[]>;
  /** Who is in the list. Errors: `store_unavailable`. */
  list(): Promise<InstanceList>;
  /**
   * Takes dead instances, whose open turns are closed, out of the list; one that has beaten since
   * stays. Errors: `store_unavailable`.
   */
  forget(dead: DeadInstance): Promise<void>;
  /** Stops all beating, as a death would, and lets go of every resource. */
  close(): Promise<void>;
}
