import { sessionStream } from '../../../shared/eventlog/streams.ts';
import type { RunContext } from '../../../shared/runs/context.ts';
import { startSweeper } from './periodicTask.ts';
import type { ProcessPart } from '../processParts.ts';

/**
 * Closes turns of this instance that are past their deadline. A cluster may record a turn only after the
 * next start has closed those that it found open. Turns of other instances are left to them, because
 * deadlines are by the owner's clock.
 */
export function ownTurnsPart({
  readModels,
  instance,
  damaged,
  runState: { openTurnQueue },
  logger,
}: Pick<RunContext, 'readModels' | 'instance' | 'damaged' | 'runState' | 'logger'>): ProcessPart {
  async function sweep(): Promise<void> {
    for (const turn of await readModels.listOpenTurns()) {
      const { owner, session_id } = turn;
      if (owner !== instance.id || !instance.isOverdue(turn)) continue;
      if (!damaged.wasFoundRecently(sessionStream(session_id))) openTurnQueue.add(session_id, 0);
    }
  }
  return { upkeep: () => startSweeper(sweep, logger) };
}
