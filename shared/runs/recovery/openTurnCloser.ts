import { addAbortListener } from 'node:events';
import { isLogUnavailable, isTurnlogError } from '../../lib/errors/turnlogError.ts';
import { isUnreadable } from '../../eventlog/reading/streamDamage.ts';
import { abortable } from '../../lib/concurrency/abortable.ts';
import type { CommandContext } from '../../commandHandling/context.ts';
import type { RunState } from '../context.ts';
import { interruptIfOrphaned, type RecoveryContext } from './interruptTurn.ts';
import type { QueuedTurn } from './openTurnQueue.ts';

/** Concurrent attempts while the store may be unavailable, and after an attempt succeeded. */
const PROBING_CONCURRENCY = 4;
const FULL_CONCURRENCY = 16;

/** Closes the turns in `openTurnQueue`. */
export interface OpenTurnCloser {
  /**
   * Starts attempts that are due, and continues while the store responds. Call several times a
   * second; without due turns, a call costs nothing. Never throws.
   */
  closeDue(signal: AbortSignal): void;
  /** Resolves when no attempt is running. */
  whenIdle(): Promise<void>;
}

interface Context extends RecoveryContext, Pick<CommandContext, 'logger'> {
  store: CommandContext['store'];
  runState: Pick<RunState, 'sessionQueue' | 'openTurnQueue'>;
}

interface CloseAttempt {
  turn: QueuedTurn;
  since: number;
  abort: AbortController;
}

const TIMED_OUT = new Error('closing the turn took too long');

/**
 * Closes the turn of a session, in the session's queue. A busy session closes the turn itself,
 * unless its run fails as well. An aborted attempt appends nothing more. An append in transit only
 * succeeds while the turn is open.
 */
async function closeTurn(context: Context, turn: QueuedTurn, signal: AbortSignal): Promise<void> {
  const { sessionQueue, openTurnQueue } = context.runState;
  const release = await sessionQueue.acquire(turn.session_id, 0, signal);
  try {
    const closing = interruptIfOrphaned(context, turn, { signal });
    const { state, head } = (await abortable(closing, signal)).loaded;
    // Below that revision, a late append may still open a turn.
    if (state.status === 'running' || head.revision >= turn.revision) openTurnQueue.remove(turn);
    else openTurnQueue.recheck(turn);
  } finally {
    release();
  }
}

/**
 * While the store is unavailable, only a few attempts wait for it. After the first response, many
 * run at a time.
 */
export function createOpenTurnCloser(context: Context): OpenTurnCloser {
  const { logger, store } = context;
  const { openTurnQueue } = context.runState;
  const attempts = new Map<Promise<void>, CloseAttempt>();
  let concurrency = PROBING_CONCURRENCY;

  async function close({ turn, abort: { signal } }: CloseAttempt): Promise<void> {
    try {
      await closeTurn(context, turn, signal);
      concurrency = FULL_CONCURRENCY;
    } catch (error) {
      if (isUnreadable(error)) return openTurnQueue.remove(turn);
      openTurnQueue.retry(turn, signal.reason === TIMED_OUT);
      if (isTurnlogError(error, 'session_busy') || signal.aborted) return;
      concurrency = PROBING_CONCURRENCY;
      const level = isLogUnavailable(error) ? 'debug' : 'error';
      logger[level](
        { err: error, session_id: turn.session_id },
        'a turn that was left open could not be closed yet',
      );
    }
  }

  function begin(turn: QueuedTurn, signal: AbortSignal): void {
    const attempt = { turn, since: performance.now(), abort: new AbortController() };
    const stopping = addAbortListener(signal, () => attempt.abort.abort(signal.reason));
    const closing = close(attempt);
    attempts.set(closing, attempt);
    void closing.finally(() => {
      stopping[Symbol.dispose]();
      attempts.delete(closing);
      if (concurrency === FULL_CONCURRENCY) beginDue(signal);
    });
  }

  function beginDue(signal: AbortSignal): void {
    while (attempts.size < concurrency && !signal.aborted) {
      const turn = openTurnQueue.take();
      if (!turn) return;
      begin(turn, signal);
    }
  }

  /**
   * Aborts attempts that hang although the store is available, because their responses may have
   * been lost in an outage.
   */
  function abortHanging(): void {
    if (store.trouble() !== undefined) return;
    for (const { turn, since, abort } of attempts.values()) {
      if (performance.now() - since > turn.timeoutMs) abort.abort(TIMED_OUT);
    }
  }

  return {
    closeDue(signal) {
      if (attempts.size > 0) abortHanging();
      beginDue(signal);
    },
    async whenIdle() {
      await Promise.all(attempts.keys());
    },
  };
}
