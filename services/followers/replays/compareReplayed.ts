import type {
  ComparisonContext,
  TurnPair,
  WholeTurn,
} from '../../../shared/replays/comparison/turnPair.ts';
import type { TurnComparison } from '../../../shared/replays/events.ts';
import type { SessionReplay, SessionRun } from './beginSessionReplay.ts';
import type { ReplayRunContext } from './replayContext.ts';
import { acquireForAttempt, openAttempt, ProcessesDied, type CountedTurn } from './replayTurn.ts';

/** The code of a turn in which processes died. */
export const CRASH = 'crash';

/** The tokens of the turn itself, without earlier tries and summaries. */
export const ownTokens = ({ end }: WholeTurn): number =>
  (end && 'tokens' in end.data && end.data.tokens?.total) || 0;

/** Compares a turn in an attempt of it, which is interrupted while a judge makes its own attempts. */
async function compareInAttempt(
  replaying: ReplayRunContext,
  { counted, pair }: { counted: CountedTurn; pair: TurnPair },
  comparing: Pick<ComparisonContext, 'budget' | 'signal'>,
): Promise<TurnComparison> {
  const { signal } = comparing;

  async function begin(): Promise<AsyncDisposable> {
    signal.throwIfAborted();
    await using resources = new AsyncDisposableStack();
    resources.use(await acquireForAttempt(replaying, counted, [], signal));
    resources.use(await openAttempt(replaying, counted, signal));
    return resources.move();
  }

  let attempt = await begin();
  const outsideAttempt: ComparisonContext['outsideAttempt'] = async (work) => {
    await attempt[Symbol.asyncDispose]();
    try {
      return await work();
    } finally {
      attempt = await begin();
    }
  };
  try {
    return await replaying.compareTurn(pair, { ...comparing, outsideAttempt });
  } finally {
    await attempt[Symbol.asyncDispose]();
  }
}

const doWork: ComparisonContext['outsideAttempt'] = (work) => work();

/**
 * Compares a turn with its replay. A comparison in which the process dies would end it at every start:
 * it counts as an attempt of the turn. Without further attempts, the turn fails with `crash`, and its
 * texts are not read.
 */
export async function compareReplayed(
  replaying: ReplayRunContext,
  { log, session, budget, signal }: SessionRun,
  { replay_session_id }: Pick<SessionReplay, 'replay_session_id'>,
  pair: TurnPair,
): Promise<TurnComparison> {
  const { recorded, replayed } = pair;
  const unattempted = { budget, signal, outsideAttempt: doWork };
  if (!replayed) return replaying.compareTurn(pair, unattempted);
  const counted = {
    actor: log.actor,
    session_id: replay_session_id,
    recorded: recorded.started.turn,
  };
  try {
    return await compareInAttempt(replaying, { counted, pair }, { budget, signal });
  } catch (error) {
    if (!(error instanceof ProcessesDied)) throw error;
    // An earlier process may have replayed later turns, whose comparisons will count theirs.
    const tokens = budget.uncompared(session.session_id, recorded.started.turn);
    const other_tokens = tokens - ownTokens(replayed);
    const withoutTexts = {
      recorded: { ...recorded, calls: [] },
      replayed: { ...replayed, calls: [], other_tokens },
    };
    return replaying.compareTurn({ ...pair, ...withoutTexts, refused: CRASH }, unattempted);
  }
}
