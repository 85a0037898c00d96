/**
 * The instances port: which processes are alive, by one shared clock. Every adapter passes
 * test/contracts/instances.ts.
 */

/** The interval of an instance's heartbeats, in milliseconds. */
export const BEAT_MS = 5_000;
/** An instance without a heartbeat for this long is considered dead, in milliseconds. */
export const DEAD_AFTER_MS = 30_000;

export interface DeadInstance {
  instance_id: string;
  /** UTC, ISO 8601. */
  last_beat_at: string;
}

/** The list at one moment. */
interface InstanceList {
  /** By the list's clock, in milliseconds since the epoch. */
  now: number;
  /** All registered instances, alive or dead. */
  ids: ReadonlySet<string>;
}

export interface Registration {
  /** Removes an instance that ends cleanly and has left no turn open. */
  end(): Promise<void>;
}

export interface Instances {
  /**
   * Registers the instance and starts its heartbeats. A failed heartbeat is followed by the next;
   * an instance removed meanwhile registers itself again. Errors: `store_unavailable` when it can't
   * be registered now.
   */
  register(instanceId: string): Promise<Registration>;
  /**
   * The instances whose last beat is older than that, oldest first. Errors: `store_unavailable`.
   */
  listDeadInstances(olderThanMs: number): Promise<DeadInstance[]>;
  /** The registered instances. Errors: `store_unavailable`. */
  list(): Promise<InstanceList>;
  /**
   * Removes a dead instance whose open turns are closed, unless it has sent a heartbeat since.
   * Errors: `store_unavailable`.
   */
  forget(dead: DeadInstance): Promise<void>;
  /** Stops all heartbeats, as a crash would, and releases all resources. */
  close(): Promise<void>;
}
