import type { SQLInputValue } from 'node:sqlite';
import type { Page } from '../../../shared/ports/readModels.ts';
import { sessionConditions } from '../../../shared/sessions/sessionConditions.ts';
import type { SessionFilter } from '../../../shared/sessions/sessionFilter.ts';
import { firstPlace, inBlocks, lastPlace } from './buckets.ts';

/** What follows FROM, and its parameters. */
export type Listing = [from: string, ...parameters: SQLInputValue[]];

const HAS_LABEL =
  'EXISTS (SELECT 1 FROM session_labels AS other WHERE other.session_id = sessions.session_id AND other.token = ?)';

/**
 * The sessions of an account that are asked for. A label is looked up in the order of the list, so
 * that rows without it are not read: `+` keeps the planner from going through all of the account's.
 */
export function listedSessions(accountId: string, page: Page & SessionFilter): Listing {
  const { columns, fixed, tokens, descending } = sessionConditions(accountId, page);
  const [, ...further] = tokens;
  const isLabelled = tokens.length > 0;
  const conditions = [
    isLabelled
      ? 'label.account_id = ? AND label.token = ? AND +sessions.account_id = label.account_id'
      : 'sessions.account_id = ?',
    ...further.map(() => HAS_LABEL),
    ...columns.map(([condition]) => {
      if (!isLabelled) return `sessions.${condition} ?`;
      return condition.startsWith('session_id')
        ? `label.${condition} ?`
        : `+sessions.${condition} ?`;
    }),
    ...fixed.map((condition) => `sessions.${condition}`),
    "sessions.status <> 'erased'",
  ];
  const join = isLabelled ? ' JOIN session_labels AS label USING (session_id)' : '';
  const key = `${isLabelled ? 'label' : 'sessions'}.session_id`;
  return [
    `sessions${join} WHERE ${conditions.join(' AND ')} ORDER BY ${key} ${descending ? 'DESC' : 'ASC'}`,
    accountId,
    ...tokens,
    ...columns.map(([, value]) => value),
  ];
}

/** Whether a filter may leave few of an account's sessions. */
export function isFiltered(
  accountId: string,
  { after: _after, ...page }: Page & SessionFilter,
): boolean {
  const { columns, tokens } = sessionConditions(accountId, page);
  return columns.length + tokens.length > 0;
}

/** Most turns lack the word in whatever place: what is around it is looked at in the others only. */
const HAS_WORD = " AND instr(words, ?) AND instr(' ' || words || ' ', ?)";

/** A session's row with those of its turns that have all of the words, unless it was just erased. */
export const sessionWithWords = (
  sessionId: string,
  words: readonly string[],
): [sql: string, ...parameters: SQLInputValue[]] => [
  `SELECT sessions.*, (SELECT group_concat(turn) FROM turn_words
    WHERE turn_words.session_id = sessions.session_id${HAS_WORD.repeat(words.length)}) AS matches
    FROM sessions WHERE session_id = ? AND status <> 'erased'`,
  ...words.flatMap((word) => [word, ` ${word} `]),
  sessionId,
];

/** The sessions that have a turn with all of the words, in these buckets, with all such turns. */
const FOUND = `(SELECT session_id, group_concat(turn) AS matches
  FROM word_index CROSS JOIN turn_words ON turn_words.rowid = word_index.rowid
  WHERE word_index MATCH ? AND word_index.rowid BETWEEN ${firstPlace('?')} AND ${lastPlace('?')}
  GROUP BY session_id) AS found`;

/**
 * FTS5 looks for the first row with all of several words from the beginning of the index on, and for the
 * one after the last to its end, whatever rows are asked for: where no turn has all of them, each piece
 * would read all. By its blocks it leaps over the others. Of one word it finds the rows at once.
 */
const inBuckets = (words: readonly string[], first: number, last: number): string =>
  (words.length > 1 ? [inBlocks(first, last), ...words] : words).join(' AND ');

/** Those among them in whose turns of some buckets words were found. `CROSS JOIN` begins with these. */
export function foundSessions(
  accountId: string,
  page: Page & SessionFilter,
  [first, last]: readonly [number, number],
): Listing {
  const { columns, fixed, tokens, words, descending } = sessionConditions(accountId, page);
  const conditions = [
    'sessions.account_id = ?',
    ...tokens.map(() => HAS_LABEL),
    ...columns.map(([condition]) => `sessions.${condition} ?`),
    ...fixed.map((condition) => `sessions.${condition}`),
    "sessions.status <> 'erased'",
  ];
  return [
    `${FOUND} CROSS JOIN sessions USING (session_id) WHERE ${conditions.join(' AND ')} ORDER BY session_id ${descending ? 'DESC' : 'ASC'} LIMIT ?`,
    inBuckets(words, first, last),
    first,
    last,
    accountId,
    ...tokens,
    ...columns.map(([, value]) => value),
    page.limit + 1,
  ];
}
