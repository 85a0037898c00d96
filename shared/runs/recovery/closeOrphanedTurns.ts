import { type Instances, DEAD_AFTER_MS } from '../../ports/instances.ts';
import type { OpenTurn, ReadModels } from '../../ports/readModels.ts';
import type { CommandContext } from '../../commandHandling/context.ts';
import type { HandleContext } from '../../commandHandling/handle.ts';
import { interruptOrphanedTurns, isPastDeadline } from './interruptTurn.ts';
import type { OpenTurnQueue } from './openTurnQueue.ts';

/**
 * How long an instance must be seen with the same last beat. After the list of instances was away,
 * every last beat is old as it comes back: this is the time to beat again, a beat and a half.
 */
const CONFIRM_MS = 8_000;
/** After a longer pause between two looks, what was seen before proves nothing. */
const MAX_POLL_GAP_MS = 6_000;

/** Tells who is dead, from looks at the list of instances at short intervals. */
export interface InstanceMonitor {
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

/**
 * By then every turn of a dead instance is past its deadline, which is at most an hour after its
 * start.
 */
const FORGET_AFTER_MS = 2 * 3_600_000;

export interface SweepContext extends HandleContext, Pick<CommandContext, 'logger'> {
  readModels: Pick<ReadModels, 'listOpenTurns'>;
  instances: Instances;
  instanceMonitor: InstanceMonitor;
  /** This process, where it runs turns. */
  own?: { id: string; openTurnQueue: OpenTurnQueue } | undefined;
}

type Owned = Pick<OpenTurn, 'owner' | 'deadline'>;

/**
 * Tells the turns past their deadline whose owners the list does not know: they had entered it
 * before these turns began, and have left it since. Who is in it and beats runs its turns, whatever
 * the deadline says, which is by the owner's clock; who is silent is dead in a moment.
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
 * Closes the turns that dead instances left open, and those past their deadline of owners that
 * nobody knows; times are those of the list of instances. Own turns past their deadline, by the own
 * clock, are noted as left open. To be called every few seconds, by any number of processes: the
 * first to append closes a turn, the others find it closed. When the signal aborts, the rest is
 * left to the next call.
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
  for (const gone of await instances.listDeadInstances(FORGET_AFTER_MS))
    await instances.forget(gone);
}
