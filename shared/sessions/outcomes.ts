import type { SessionEvent } from './events.ts';

/** How a turn ends. */
export const OUTCOMES = ['completed', 'failed', 'interrupted'] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** The columns of `sessions` that count turns by outcome. */
type OutcomeCounts = Record<`turns_${Outcome}`, number>;

/** The counts of a session without ended turns. */
export const NO_OUTCOMES: OutcomeCounts = {
  turns_completed: 0,
  turns_failed: 0,
  turns_interrupted: 0,
};

type TurnEnd = Extract<SessionEvent['type'], `session.turn_${Outcome}.v1`>;

const COLUMNS: Record<TurnEnd, keyof OutcomeCounts> = {
  'session.turn_completed.v1': 'turns_completed',
  'session.turn_failed.v1': 'turns_failed',
  'session.turn_interrupted.v1': 'turns_interrupted',
};

/** The count that the end of a turn changes. */
export function withOutcome(row: OutcomeCounts, type: TurnEnd): Partial<OutcomeCounts> {
  const column = COLUMNS[type];
  return { [column]: row[column] + 1 };
}

/** SQL: the session has a turn that ended so. A partial index needs a condition without parameters. */
export const outcomeCondition = (outcome: Outcome): string => `sessions.turns_${outcome} > 0`;
