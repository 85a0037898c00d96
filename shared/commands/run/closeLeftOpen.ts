import { isTurnlogError } from '../../errors.ts';
import type { RunContext } from './context.ts';
import { interruptIfOrphaned } from './interruptTurn.ts';

/**
 * Closes the turns that this instance had to leave open while the store was away. A session that is busy again looks after
 * itself: its next run closes the turn first. Meant to be called now and then; never rejects.
 */
export async function closeLeftOpen(context: RunContext, signal: AbortSignal): Promise<void> {
  for (const session_id of context.leftOpen) {
    try {
      const leave = await context.queue.enter(session_id, 0, signal);
      try {
        await interruptIfOrphaned(context, session_id);
        context.leftOpen.delete(session_id);
      } finally {
        leave();
      }
    } catch (error) {
      if (isTurnlogError(error, 'session_busy')) continue;
      context.logger.debug({ err: error, session_id }, 'a turn that was left open could not be closed yet');
      return;
    }
  }
}
