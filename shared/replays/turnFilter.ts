import type { Page } from '../readModels/pageOf.ts';
import type { ReplayTurnFilter } from './replayReads.ts';
import { replayEntry } from './tables.ts';

/** What a listed turn of a replay has to fulfil, for SQL. */
interface ReplayTurnConditions {
  /** On `replay_turns`: columns and operators, each with its value. */
  columns: (readonly [condition: string, value: string])[];
  /** Conditions without a value. */
  fixed: string[];
}

/** What is asked of the turns of a replay, but for whose they are. */
export function replayTurnConditions({
  after = '',
  only,
  session_id,
}: Page & ReplayTurnFilter): ReplayTurnConditions {
  const ofSession: [string, string][] =
    session_id === undefined
      ? []
      : [
          ['entry >=', replayEntry(session_id, 0)],
          ['entry <=', `${session_id}.:`],
        ];
  const isOutcome = only !== undefined && only !== 'checks_failed';
  return {
    columns: [
      ['entry >', after],
      ...ofSession,
      ...(isOutcome ? [['outcome =', only] as const] : []),
    ],
    fixed: only === 'checks_failed' ? ['failed_checks > 0'] : [],
  };
}
