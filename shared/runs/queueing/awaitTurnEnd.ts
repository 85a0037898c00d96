import { addAbortListener } from 'node:events';
import { sleepUntilAborted } from '../../lib/time/sleep.ts';
import type { RunState } from '../context.ts';
import type { WatchedTurn } from './turnWatch.ts';

/** Delay before a turn is read again whose end was signalled but is not visible yet. */
const REREAD_DELAY_MS = 100;

type RunningTurn = Pick<WatchedTurn, 'session_id' | 'turn' | 'revision'>;

interface AwaitTurnOptions<Response> {
  account_id: string;
  /** Longest wait in milliseconds. */
  waitMs: number;
  /** Ends the wait when the client disconnects or the process stops. */
  signal: AbortSignal;
  /**
   * Reads the turn and makes the response. While the turn runs and time of the wait remains, it
   * resolves with no more than the state of the turn, so that no texts are in memory during the wait.
   */
  respond: (
    remainingMs: () => number,
  ) => Promise<{ running: RunningTurn } | { response: Response }>;
}

type WatchContext = Pick<RunState, 'turnWatch' | 'turnWaits'>;

/** Resolves when the turn may have ended or the wait is over. */
function waitUntilTurnMayHaveEnded(
  { turnWatch }: WatchContext,
  turn: RunningTurn,
  { waitMs, signal }: Pick<AwaitTurnOptions<unknown>, 'waitMs' | 'signal'>,
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
 * Resolves with the response when the turn has ended in any process, or at the end of the wait.
 * Errors: those of `respond`; `rate_limited`, `overloaded` if too many requests wait.
 */
export async function awaitTurnEnd<Response>(
  context: WatchContext,
  options: AwaitTurnOptions<Response>,
): Promise<Response> {
  const { account_id, waitMs, signal, respond } = options;
  const until = performance.now() + waitMs;
  const remainingMs = (): number => (signal.aborted ? 0 : Math.max(0, until - performance.now()));
  let state = await respond(remainingMs);
  if ('response' in state) return state.response;
  using _permit = context.turnWaits.acquire({ account_id });
  while ('running' in state) {
    await waitUntilTurnMayHaveEnded(context, state.running, { waitMs: remainingMs(), signal });
    state = await respond(remainingMs);
    const delayMs = Math.min(REREAD_DELAY_MS, remainingMs());
    if ('running' in state && delayMs > 0) await sleepUntilAborted(delayMs, { signal });
  }
  return state.response;
}
