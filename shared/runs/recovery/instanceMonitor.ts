import { DEAD_AFTER_MS, type Instances } from '../../ports/instances.ts';

/**
 * How long an instance must be seen with the same last beat. After the list of instances was away,
 * every last beat is old as it comes back: this is the time to beat again, a beat and a half.
 */
const CONFIRM_MS = 8_000;
/** After a longer pause between two looks, what was seen before proves nothing. */
const MAX_POLL_GAP_MS = 6_000;

/** Tells who is dead, from looks at the list of instances at short intervals. */
export interface InstanceMonitor {
  /** Errors: `store_unavailable`; nobody is taken for dead then until it was seen anew. */
  poll(): Promise<void>;
  /**
   * True for an instance that has not beaten for DEAD_AFTER_MS, the last part of it before these
   * eyes.
   */
  isDead(instanceId: string): boolean;
}

/** `now` in milliseconds of a monotonic clock. */
export function createInstanceMonitor(
  instances: Pick<Instances, 'listDeadInstances'>,
  now = (): number => performance.now(),
): InstanceMonitor {
  /** Since when an instance was seen with its last beat, by both. */
  let seenSince = new Map<string, number>();
  let dead = new Set<string>();
  let lookedAt = -Infinity;

  function forget(): void {
    seenSince = new Map();
    dead = new Set();
  }

  return {
    async poll() {
      if (now() - lookedAt > MAX_POLL_GAP_MS) forget();
      try {
        const silent = await instances.listDeadInstances(DEAD_AFTER_MS - CONFIRM_MS);
        lookedAt = now();
        const seen = silent.map(({ instance_id, last_beat_at }) => ({
          instance_id,
          beat: `${instance_id} ${last_beat_at}`,
        }));
        seenSince = new Map(seen.map(({ beat }) => [beat, seenSince.get(beat) ?? lookedAt]));
        dead = new Set(
          seen
            .filter(({ beat }) => lookedAt - seenSince.get(beat)! >= CONFIRM_MS)
            .map(({ instance_id }) => instance_id),
        );
      } catch (error) {
        forget();
        throw error;
      }
    },
    isDead: (instanceId) => dead.has(instanceId),
  };
}
