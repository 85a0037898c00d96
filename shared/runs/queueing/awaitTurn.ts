import { addAbortListener } from 'node:events';
import { sleepUntilAborted } from '../../lib/time/sleep.ts';
import type { TurnRow } from '../../readModels/tables.ts';
import type { RunState } from '../context.ts';
import type { WatchedTurn } from './turnWatch.ts';

/** Delay before a turn is read again whose end was signalled but is not visible yet. */
const REREAD_DELAY_MS = 100;

interface AwaitTurnOptions {
  account_id: string;
  /** Longest wait in milliseconds. */
  waitMs: number;
  /** Ends the wait when the client disconnects or the process stops. */
  signal: AbortSignal;
  /** Reads the current state of the turn. */
  readTurn: () => Promise<TurnRow>;
}

type WatchContext = Pick<RunState, 'turnWatch' | 'turnWaits'>;

/** Resolves when the turn may have ended or the wait is over. */
function untilTurnMayHaveEnded(
  { turnWatch }: WatchContext,
  turn: Pick<WatchedTurn, 'session_id' | 'turn' | 'revision'>,
  { waitMs, signal }: Pick<AwaitTurnOptions, 'waitMs' | 'signal'>,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const unwatch = turnWatch.subscribe({ ...turn, by: 'client', onEnd: () => resolve() });
  const timer = setTimeout(resolve, waitMs);
  const stopping = addAbortListener(signal, () => resolve());
  return promise.finally(() => {
    unwatch();
    clearTimeout(timer);
    stopping[Symbol.dispose]();
  });
}

/**
 * Resolves with the turn when it has ended in any process, or at the end of the wait. Errors: those
 * of `readTurn`; `rate_limited`, `overloaded` if too many requests wait.
 */
export async function awaitTurn(
  context: WatchContext,
  options: AwaitTurnOptions,
): Promise<TurnRow> {
  const { account_id, waitMs, signal, readTurn } = options;
  const until = performance.now() + waitMs;
  let row = await readTurn();
  if (row.status !== 'running' || waitMs === 0) return row;
  const permit = context.turnWaits.acquire({ account_id, bytes: 0 });
  try {
    while (row.status === 'running' && performance.now() < until && !signal.aborted) {
      const { session_id, turn, revision } = row;
      const remainingMs = until - performance.now();
      await untilTurnMayHaveEnded(
        context,
        { session_id, turn, revision },
        { waitMs: remainingMs, signal },
      );
      row = await readTurn();
      const delayMs = Math.min(REREAD_DELAY_MS, until - performance.now());
      if (row.status === 'running' && delayMs > 0) await sleepUntilAborted(delayMs, { signal });
    }
    return row;
  } finally {
    permit.release();
  }
}
