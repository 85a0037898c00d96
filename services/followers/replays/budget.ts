import type { Budget } from '../../../shared/replays/comparison/turnPair.ts';
import type { ReplayStream } from './replayStream.ts';

/** Nothing more is begun: the tokens of the replay are used. */
export class BudgetSpent extends Error {}

/** What was taken in one session of the replay for one recorded turn. */
type Taken = Parameters<Budget['took']>[0];

/**
 * The budget of a replay: what its stream says that was taken, and what turns took that are not
 * compared yet.
 */
export function createBudget(log: Pick<ReplayStream, 'state'>): Budget {
  const open = new Map<string, Taken>();

  /** Without what the stream of the replay says meanwhile. */
  function stillOpen(): Taken[] {
    const state = log.state();
    for (const [key, { session_id, turn }] of open) {
      const session = 'sessions' in state ? state.sessions.get(session_id) : undefined;
      if (!session || session.ended || turn <= session.compared) open.delete(key);
    }
    return [...open.values()];
  }
  const sum = (all: readonly Taken[]): number =>
    all.reduce((total, { tokens }) => total + tokens, 0);

  return {
    took(taken) {
      open.set(`${taken.in}/${taken.turn}`, taken);
      stillOpen();
    },
    uncompared: (sessionId) =>
      sum(stillOpen().filter(({ session_id }) => session_id === sessionId)),
    isSpent() {
      const left = stillOpen();
      const state = log.state();
      return 'settings' in state && state.tokens + sum(left) >= state.settings.budget_tokens;
    },
  };
}
