import { isTurnlogError } from '../../errors.ts';
import type { RunContext } from './context.ts';
import { interruptIfOrphaned } from './interruptTurn.ts';
import type { LeftTurn } from './leftOpen.ts';

/** Sessions looked at together while nothing tells that the store is back, and once one was looked at. */
const SCOUTS = 4;
const TOGETHER = 16;

/** Closes the turns that this instance had to leave open. */
export interface LeftOpenCloser {
  /**
   * Begins with what is due, and goes on by itself for as long as the store answers. Meant to be called several times a
   * second: it costs nothing while nothing is due. Never throws.
   */
  closeDue(signal: AbortSignal): void;
  /** Resolves when nothing is at work. */
  idle(): Promise<void>;
}

type Context = Pick<RunContext, 'store' | 'damaged' | 'ids' | 'clock' | 'isGone' | 'queue' | 'leftOpen' | 'logger'>;

/** Looks at one session. A session that is busy again looks after itself, but its run may fail as well. Errors: those of interruptIfOrphaned. */
async function look(context: Context, turn: LeftTurn, signal: AbortSignal): Promise<void> {
  const leave = await context.queue.enter(turn.session_id, 0, signal);
  try {
    const { state, head } = await interruptIfOrphaned(context, turn.session_id);
    // Before that revision was reached a late append may still open a turn.
    if (state.status === 'running' || head.revision >= turn.revision) context.leftOpen.settle(turn);
    else context.leftOpen.lookAgain(turn);
  } finally {
    leave();
  }
}

/** While the store is away few wait for it, so that it is not asked by hundreds; each success lets the others follow. */
export function createLeftOpenCloser(context: Context): LeftOpenCloser {
  const { leftOpen, logger } = context;
  const atWork = new Set<Promise<void>>();
  let together = SCOUTS;

  async function close(turn: LeftTurn, signal: AbortSignal): Promise<void> {
    try {
      await look(context, turn, signal);
      together = TOGETHER;
    } catch (error) {
      if (isTurnlogError(error, 'stream_damaged')) return leftOpen.settle(turn);
      leftOpen.putBack(turn);
      if (isTurnlogError(error, 'session_busy') || signal.aborted) return;
      together = SCOUTS;
      const level = isTurnlogError(error, 'store_unavailable') ? 'debug' : 'error';
      logger[level]({ err: error, session_id: turn.session_id }, 'a turn that was left open could not be closed yet');
    }
  }

  function closeDue(signal: AbortSignal): void {
    while (atWork.size < together && !signal.aborted) {
      const turn = leftOpen.take();
      if (!turn) return;
      const closing = close(turn, signal);
      atWork.add(closing);
      void closing.finally(() => {
        atWork.delete(closing);
        if (together === TOGETHER) closeDue(signal);
      });
    }
  }

  return {
    closeDue,
    async idle() {
      await Promise.all(atWork);
    },
  };
}
