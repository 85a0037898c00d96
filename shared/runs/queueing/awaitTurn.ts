import { addAbortListener } from 'node:events';
import { sleepUntilAborted } from '../../lib/time/sleep.ts';
import type { TurnRow } from '../../readModels/tables.ts';
import type { RunState } from '../context.ts';
import type { WatchedTurn } from './turnWatch.ts';

/** What was told to have ended, and is not seen to, is looked at again after so long. */
const LOOK_AGAIN_MS = 100;

interface AwaitTurnOptions {
  account_id: string;
  /** How long, at the most, in milliseconds. */
  waitMs: number;
  /** Ends the wait: nobody is there to be told any more, or the process stops. */
  signal: AbortSignal;
  /** Reads the turn as it is now. */
  readTurn: () => Promise<TurnRow>;
}

type WatchContext = Pick<RunState, 'turnWatch' | 'turnWaits'>;

/** Resolves when the turn may have ended, and when the wait is over. */
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
 * The turn as it is when it has ended, whichever process runs it, or when the wait is over. Errors:
 * those of the look; `rate_limited`, `overloaded` where too many wait.
 */
export async function awaitTurn(
  context: WatchContext,
  waiting: AwaitTurnOptions,
): Promise<TurnRow> {
  const { account_id, waitMs, signal, readTurn } = waiting;
  const until = performance.now() + waitMs;
  let row = await readTurn();
  if (row.status !== 'running' || waitMs === 0) return row;
  const place = context.turnWaits.acquire({ account_id, bytes: 0 });
  try {
    while (row.status === 'running' && performance.now() < until && !signal.aborted) {
      const { session_id, turn, revision } = row;
      const left = until - performance.now();
      await untilTurnMayHaveEnded(
        context,
        { session_id, turn, revision },
        { waitMs: left, signal },
      );
      row = await readTurn();
      const late = Math.min(LOOK_AGAIN_MS, until - performance.now());
      if (row.status === 'running' && late > 0) await sleepUntilAborted(late, { signal });
    }
    return row;
  } finally {
    place.release();
  }
}
