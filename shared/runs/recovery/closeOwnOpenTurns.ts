import { addAbortListener } from 'node:events';
import { isLogUnavailable, isTurnlogError } from '../../lib/errors/turnlogError.ts';
import { isUnreadable } from '../../eventlog/reading/streamDamage.ts';
import { abortable } from '../../lib/concurrency/abortable.ts';
import type { CommandContext } from '../../commandHandling/context.ts';
import type { RunSessions } from '../context.ts';
import { interruptIfOrphaned, type OrphanContext } from './interruptTurn.ts';
import type { LeftTurn } from './openTurnQueue.ts';

/**
 * Sessions looked at together while nothing tells that the store is back, and once one was looked
 * at.
 */
const SCOUTS = 4;
const TOGETHER = 16;

/** Closes the turns that this instance had to leave open. */
export interface LeftOpenCloser {
  /**
   * Begins with what is due, and goes on by itself while the store answers. To be called several
   * times a second: it costs nothing while nothing is due. Never throws.
   */
  closeDue(signal: AbortSignal): void;
  /** Resolves when nothing is at work. */
  idle(): Promise<void>;
}

interface Context extends OrphanContext, Pick<CommandContext, 'logger'> {
  store: CommandContext['store'];
  sessions: Pick<RunSessions, 'queue' | 'leftOpen'>;
}

interface Look {
  turn: LeftTurn;
  since: number;
  giveUp: AbortController;
}

const TOOK_TOO_LONG = new Error('it took too long');

/**
 * Looks at one session, in its queue. A session that is busy again looks after itself, but its run
 * may fail too. A look that was given up adds nothing any more; an append on its way fits only
 * while the turn is open.
 * Errors: `session_busy`, those of interruptIfOrphaned, the signal's reason.
 */
async function lookAt(context: Context, turn: LeftTurn, signal: AbortSignal): Promise<void> {
  const { queue, leftOpen } = context.sessions;
  const leave = await queue.enter(turn.session_id, 0, signal);
  try {
    const looking = interruptIfOrphaned(context, turn, { signal });
    const { state, head } = (await abortable(looking, signal)).found;
    // Before that revision was reached a late append may still open a turn.
    if (state.status === 'running' || head.revision >= turn.revision) leftOpen.settle(turn);
    else leftOpen.lookAgain(turn);
  } finally {
    leave();
  }
}

/**
 * While the store is away few wait for it, and hundreds follow as soon as one of them has been
 * answered.
 */
export function createLeftOpenCloser(context: Context): LeftOpenCloser {
  const { logger, store } = context;
  const { leftOpen } = context.sessions;
  const atWork = new Map<Promise<void>, Look>();
  let together = SCOUTS;

  async function close({ turn, giveUp: { signal } }: Look): Promise<void> {
    try {
      await lookAt(context, turn, signal);
      together = TOGETHER;
    } catch (error) {
      if (isUnreadable(error)) return leftOpen.settle(turn);
      leftOpen.putBack(turn, signal.reason === TOOK_TOO_LONG);
      if (isTurnlogError(error, 'session_busy') || signal.aborted) return;
      together = SCOUTS;
      const level = isLogUnavailable(error) ? 'debug' : 'error';
      logger[level](
        { err: error, session_id: turn.session_id },
        'a turn that was left open could not be closed yet',
      );
    }
  }

  function begin(turn: LeftTurn, signal: AbortSignal): void {
    const look = { turn, since: performance.now(), giveUp: new AbortController() };
    const stopping = addAbortListener(signal, () => look.giveUp.abort(signal.reason));
    const closing = close(look);
    atWork.set(closing, look);
    void closing.finally(() => {
      stopping[Symbol.dispose]();
      atWork.delete(closing);
      if (together === TOGETHER) beginDue(signal);
    });
  }

  function beginDue(signal: AbortSignal): void {
    while (atWork.size < together && !signal.aborted) {
      const turn = leftOpen.take();
      if (!turn) return;
      begin(turn, signal);
    }
  }

  /**
   * Looks that hang although the store is there: what they wait for may have been lost when it was
   * not.
   */
  function giveUpHanging(): void {
    if (store.trouble() !== undefined) return;
    for (const { turn, since, giveUp } of atWork.values()) {
      if (performance.now() - since > turn.patienceMs) giveUp.abort(TOOK_TOO_LONG);
    }
  }

  return {
    closeDue(signal) {
      if (atWork.size > 0) giveUpHanging();
      beginDue(signal);
    },
    async idle() {
      await Promise.all(atWork.keys());
    },
  };
}
