import type { ToolCalledData } from '../events.ts';
import type { TurnRound } from './turnOutputPosition.ts';
import { failedTurn, failureOfRow, turnFailureError } from './turnFailure.ts';
import { toRunResult, type RunResult } from '../../runs/runResult.ts';
import type { TurnRow } from '../../readModels/tables.ts';

/** The end of a turn; a failure is the error for the client. */
export type RecordedTurnOutcome = { result: RunResult } | { failed: unknown };

/** A turn as recorded so far. */
export interface RecordedTurn {
  rounds: TurnRound[];
  /** Undefined while the turn is open. */
  outcome: RecordedTurnOutcome | undefined;
  /** The deadline of the turn's run. */
  deadline: string;
}

function roundsOf(
  calls: readonly ToolCalledData[],
  { output, reasoning }: Pick<TurnRow, 'output' | 'reasoning'>,
): TurnRound[] {
  const byRound = Map.groupBy(calls, ({ round }) => round);
  const rounds: TurnRound[] = [];
  for (let round = 1; round <= (calls.at(-1)?.round ?? 0); round += 1) {
    const callsOfRound = byRound.get(round) ?? [];
    const { content = '', reasoning: ofRound = '' } = callsOfRound[0] ?? {};
    rounds.push({ reasoning: ofRound, text: content, calls: callsOfRound });
  }
  return output === null
    ? rounds
    : [...rounds, { reasoning: reasoning ?? '', text: output, calls: [] }];
}

/** The end of a turn from its row; undefined while the turn is open. */
function outcomeOf(row: TurnRow): RecordedTurnOutcome | undefined {
  const { session_id, turn, status, output, tokens, context } = row;
  if (status === 'running') return undefined;
  // A failed turn may also have output and tokens.
  if (status === 'completed' && output !== null && tokens !== null) {
    const finish_reason = row.finish_reason ?? '';
    const completed = { ...row, output, tokens, finish_reason };
    return { result: toRunResult(session_id, completed, context ?? undefined) };
  }
  const failure = failureOfRow(row) ?? failedTurn({ code: '', message: '' });
  return { failed: turnFailureError(failure, { session_id, turn }) };
}

/** Builds a recorded turn from a row with decrypted texts. */
export function buildRecordedTurn(row: TurnRow): RecordedTurn {
  const calls = row.tool_calls.map((call) => ({ ...call, turn: row.turn }));
  return {
    rounds: roundsOf(calls, row),
    outcome: outcomeOf(row),
    deadline: row.deadline,
  };
}
