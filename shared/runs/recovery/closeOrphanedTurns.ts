import { type Instances, DEAD_AFTER_MS } from '../../ports/instances.ts';
import type { OpenTurn, ReadModels } from '../../ports/readModels.ts';
import type { CommandContext } from '../../commandHandling/context.ts';
import type { HandleContext } from '../../commandHandling/handle.ts';
import { interruptOrphanedTurns, isPastDeadline } from './interruptTurn.ts';
import type { OpenTurnQueue } from './openTurnQueue.ts';

/**
 * How long the same last beat of an instance must be observed. After an outage of the list of
 * instances, every last beat is old. This leaves time for one and a half beats.
 */
const CONFIRM_MS = 8_000;
/** After a longer gap between two polls, earlier observations are discarded. */
const MAX_POLL_GAP_MS = 6_000;

/** Detects dead instances by polling the list of instances. */
export interface InstanceMonitor {
  poll(): Promise<void>;
  /**
   * True for an instance without a beat for DEAD_AFTER_MS, of which this monitor observed the last
   * CONFIRM_MS.
   */
  isDead(instanceId: string): boolean;
}

/** `now` returns milliseconds of a monotonic clock. */
export function createInstanceMonitor(
  instances: Pick<Instances, 'listDeadInstances'>,
  now = (): number => performance.now(),
): InstanceMonitor {
  /** When an instance was first observed with its last beat, by instance and beat. */
  let seenSince = new Map<string, number>();
  let dead = new Set<string>();
  let polledAt = -Infinity;

  function reset(): void {
    seenSince = new Map();
    dead = new Set();
  }

  return {
    async poll() {
      if (now() - polledAt > MAX_POLL_GAP_MS) reset();
      try {
        const silent = await instances.listDeadInstances(DEAD_AFTER_MS - CONFIRM_MS);
        polledAt = now();
        const silentBeats = silent.map(({ instance_id, last_beat_at }) => ({
          instance_id,
          beat: `${instance_id} ${last_beat_at}`,
        }));
        seenSince = new Map(silentBeats.map(({ beat }) => [beat, seenSince.get(beat) ?? polledAt]));
        dead = new Set(
          silentBeats
            .filter(({ beat }) => polledAt - seenSince.get(beat)! >= CONFIRM_MS)
            .map(({ instance_id }) => instance_id),
        );
      } catch (error) {
        reset();
        throw error;
      }
    },
    isDead: (instanceId) => dead.has(instanceId),
  };
}

/**
 * By then, every turn of a dead instance is past its deadline, which is at most an hour after its
 * start.
 */
const FORGET_AFTER_MS = 2 * 3_600_000;

export interface SweepContext extends HandleContext, Pick<CommandContext, 'logger'> {
  readModels: Pick<ReadModels, 'listOpenTurns'>;
  instances: Instances;
  instanceMonitor: InstanceMonitor;
  /** This process, if it runs turns. */
  own?: { id: string; openTurnQueue: OpenTurnQueue } | undefined;
}

type Owned = Pick<OpenTurn, 'owner' | 'deadline'>;

/**
 * Finds turns past their deadline whose owners are no longer in the list of instances. A listed
 * instance that beats is still running its turns, because deadlines are by the owner's clock. A
 * silent one will soon be detected as dead.
 */
async function findOverdue(
  instances: Pick<Instances, 'list'>,
  turns: readonly OpenTurn[],
): Promise<(turn: Owned) => boolean> {
  if (turns.length === 0) return () => false;
  const { now, ids } = await instances.list();
  const unknown = new Set(turns.map(({ owner }) => owner).filter((owner) => !ids.has(owner)));
  return ({ owner, deadline }) => unknown.has(owner) && isPastDeadline(deadline, now);
}

/**
 * Closes the open turns of dead instances, and overdue turns of unknown owners. Times are those of
 * the list of instances. Overdue turns of this process, by its clock, are added to `openTurnQueue`.
 * Call every few seconds, in any number of processes: the first append closes a turn. When the
 * signal aborts, the remaining turns are left to the next call.
 */
export async function closeOrphanedTurns(
  { readModels, instances, instanceMonitor, own, ...parts }: SweepContext,
  signal: AbortSignal,
): Promise<void> {
  const open = await readModels.listOpenTurns();
  await instanceMonitor.poll();
  for (const { owner, session_id, deadline } of open)
    if (owner === own?.id && isPastDeadline(deadline, parts.clock.now()))
      own.openTurnQueue.add(session_id, 0);
  const dead = open.filter(({ owner }) => instanceMonitor.isDead(owner));
  const others = open.filter(({ owner }) => !instanceMonitor.isDead(owner));
  const isOverdue = await findOverdue(instances, others);
  const instance = { isGone: instanceMonitor.isDead, isOverdue };
  await interruptOrphanedTurns(
    { ...parts, instance },
    [...dead, ...others.filter(isOverdue)],
    signal,
  );
  for (const instance_id of await instances.listDeadInstances(FORGET_AFTER_MS))
    await instances.forget(instance_id);
}
