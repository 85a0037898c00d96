/** How a turn ends. */
export const OUTCOMES = ['completed', 'failed', 'interrupted'] as const;
export type EndOfTurnStatus = (typeof OUTCOMES)[number];

/** The columns of `sessions` that count turns by outcome. */
export type OutcomeCounts = Record<`turns_${EndOfTurnStatus}`, number>;

/** The counts of a session without ended turns. */
export const NO_OUTCOMES: OutcomeCounts = {
  turns_completed: 0,
  turns_failed: 0,
  turns_interrupted: 0,
};

/** SQL: the session has a turn that ended so. A partial index needs a condition without parameters. */
export const outcomeCondition = (outcome: EndOfTurnStatus): string =>
  `sessions.turns_${outcome} > 0`;
