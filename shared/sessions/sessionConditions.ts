import type { Page } from '../ports/readModels.ts';
import { ANY_REPLAY, type SessionFilter } from './sessionFilter.ts';
import { labelToken } from './labelToken.ts';

/** What a listed session has to fulfil, for SQL: columns and operators, each with its value. */
export interface SessionConditions {
  /** On `sessions`, without the account. */
  columns: (readonly [condition: string, value: string])[];
  /** Tokens of labels. */
  tokens: string[];
  /** On `sessions`, without a value. */
  fixed: string[];
  /** Tokens of words; none where none are sought. */
  words: readonly string[];
  descending: boolean;
}

/** What is asked of the sessions of an account, but for whose they are. */
export function sessionConditions(
  accountId: string,
  { after, order = 'newest', labels = [], words = [], replay_id, ...filter }: Page & SessionFilter,
): SessionConditions {
  const descending = order === 'newest';
  const conditions: (readonly [string, string | undefined])[] = [
    ['agent_id =', filter.agent_id],
    ['status =', filter.status],
    ['created_at >=', filter.created_from],
    ['created_at <', filter.created_to],
    ['updated_at >=', filter.updated_from],
    ['updated_at <', filter.updated_to],
    ['replay_id =', replay_id === ANY_REPLAY ? undefined : replay_id],
    [`session_id ${descending ? '<' : '>'}`, after],
  ];
  return {
    columns: conditions.filter(
      (condition): condition is [string, string] => condition[1] !== undefined,
    ),
    tokens: labels.map(([name, value]) => labelToken(accountId, name, value)),
    fixed: replay_id === undefined ? ['replay_id IS NULL'] : [],
    words,
    descending,
  };
}
