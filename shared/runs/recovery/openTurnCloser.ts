import { addAbortListener } from 'node:events';
import { isLogUnavailable, isTurnlogError } from '../../lib/errors/turnlogError.ts';
import { isUnreadable } from '../../eventlog/reading/streamDamage.ts';
import { abortable } from '../../lib/concurrency/abortable.ts';
import type { CommandContext } from '../../commandHandling/context.ts';
import type { RunState } from '../context.ts';
import { interruptIfOrphaned, type RecoveryContext } from './interruptTurn.ts';
import type { QueuedTurn } from './openTurnQueue.ts';

/**
 * Sessions looked at together while nothing tells that the store is back, and once one was looked
 * at.
 */
const PROBING_CONCURRENCY = 4;
const FULL_CONCURRENCY = 16;

/** Closes the turns that this instance had to leave open. */
export interface OpenTurnCloser {
  /**
   * Begins with what is due, and goes on by itself while the store answers. To be called several
   * times a second: it costs nothing while nothing is due. Never throws.
   */
  closeDue(signal: AbortSignal): void;
  /** Resolves when nothing is at work. */
  whenIdle(): Promise<void>;
}

interface Context extends RecoveryContext, Pick<CommandContext, 'logger'> {
  store: CommandContext['store'];
  runState: Pick<RunState, 'sessionQueue' | 'openTurnQueue'>;
}

interface CloseAttempt {
  turn: QueuedTurn;
  since: number;
  giveUp: AbortController;
}

const TIMED_OUT = new Error('it took too long');

/**
 * Looks at one session, in its queue. A session that is busy again looks after itself, but its run
 * may fail too. A look that was given up adds nothing any more; an append on its way fits only
 * while the turn is open.
 */
async function closeTurn(context: Context, turn: QueuedTurn, signal: AbortSignal): Promise<void> {
  const { sessionQueue, openTurnQueue } = context.runState;
  const leave = await sessionQueue.acquire(turn.session_id, 0, signal);
  try {
    const looking = interruptIfOrphaned(context, turn, { signal });
    const { state, head } = (await abortable(looking, signal)).loaded;
    // Before that revision was reached a late append may still open a turn.
    if (state.status === 'running' || head.revision >= turn.revision) openTurnQueue.remove(turn);
    else openTurnQueue.recheck(turn);
  } finally {
    leave();
  }
}

/**
 * While the store is away few wait for it, and hundreds follow as soon as one of them has been
 * answered.
 */
export function createOpenTurnCloser(context: Context): OpenTurnCloser {
  const { logger, store } = context;
  const { openTurnQueue } = context.runState;
  const atWork = new Map<Promise<void>, CloseAttempt>();
  let together = PROBING_CONCURRENCY;

  async function close({ turn, giveUp: { signal } }: CloseAttempt): Promise<void> {
    try {
      await closeTurn(context, turn, signal);
      together = FULL_CONCURRENCY;
    } catch (error) {
      if (isUnreadable(error)) return openTurnQueue.remove(turn);
      openTurnQueue.retry(turn, signal.reason === TIMED_OUT);
      if (isTurnlogError(error, 'session_busy') || signal.aborted) return;
      together = PROBING_CONCURRENCY;
      const level = isLogUnavailable(error) ? 'debug' : 'error';
      logger[level](
        { err: error, session_id: turn.session_id },
        'a turn that was left open could not be closed yet',
      );
    }
  }

  function begin(turn: QueuedTurn, signal: AbortSignal): void {
    const look = { turn, since: performance.now(), giveUp: new AbortController() };
    const stopping = addAbortListener(signal, () => look.giveUp.abort(signal.reason));
    const closing = close(look);
    atWork.set(closing, look);
    void closing.finally(() => {
      stopping[Symbol.dispose]();
      atWork.delete(closing);
      if (together === FULL_CONCURRENCY) beginDue(signal);
    });
  }

  function beginDue(signal: AbortSignal): void {
    while (atWork.size < together && !signal.aborted) {
      const turn = openTurnQueue.take();
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
      if (performance.now() - since > turn.timeoutMs) giveUp.abort(TIMED_OUT);
    }
  }

  return {
    closeDue(signal) {
      if (atWork.size > 0) giveUpHanging();
      beginDue(signal);
    },
    async whenIdle() {
      await Promise.all(atWork.keys());
    },
  };
}
