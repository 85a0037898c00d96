import type { Instances } from '../../ports/instances.ts';
import type { ReadModels } from '../../ports/readModels.ts';
import type { CommandContext } from '../context.ts';
import type { HandleContext } from '../handle.ts';
import type { DeathWatch } from './deathWatch.ts';
import { interruptOrphans, isOverdue } from './interruptTurn.ts';

/**
 * By then every turn of a dead instance is past its deadline, which is at most an hour after its
 * start.
 */
const FORGET_AFTER_MS = 2 * 3_600_000;

export interface SweepContext extends HandleContext, Pick<CommandContext, 'logger'> {
  readModels: Pick<ReadModels, 'listOpenTurns'>;
  instances: Instances;
  watch: DeathWatch;
}

/**
 * Closes the turns that dead instances left open, and those past their deadline. To be called every
 * few seconds, by any number of processes: the first to append closes a turn, the others find it
 * closed. When the signal aborts, the rest is left to the next call.
 * Errors: `store_unavailable`.
 */
export async function closeTurnsOfTheDead(
  { readModels, instances, watch, ...parts }: SweepContext,
  signal: AbortSignal,
): Promise<void> {
  await watch.look();
  const open = await readModels.listOpenTurns();
  const orphans = open.filter(
    ({ owner, deadline }) => watch.isDead(owner) || isOverdue(parts, deadline),
  );
  await interruptOrphans({ ...parts, instance: { isGone: watch.isDead } }, orphans, signal);
  for (const instance of await instances.listDeadInstances(FORGET_AFTER_MS))
    await instances.forget(instance);
}
