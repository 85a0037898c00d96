/** Searches for words in the turns of the sessions that a filter leaves, without the index of words. */
import { createPause, type Pause } from '../../../shared/lib/concurrency/yieldToEventLoop.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { Page } from '../../../shared/readModels/page.ts';
import type { WordSearch } from '../../../shared/search/turnIndex.ts';
import type { SessionFilter } from '../../../shared/sessions/sessionFilter.ts';
import {
  isFiltered,
  sessionConditions,
  sessionIndexes,
} from '../../../shared/sessions/sqlQueries.ts';
import type { GenerationReader } from './generationReader.ts';
import { sqliteSql, type SqliteRow } from './statements.ts';

const {
  matches: MATCHES,
  fewSessions: MOST_SCANNED_SESSIONS,
  turnsOfFew: MOST_SCANNED_TURNS,
} = LIMITS.search;

export type Search = Page & WordSearch;
export type Current = () => GenerationReader;

/** Finding a turn in the index takes up to this many times as long as looking at one of a session. */
const INDEX_COST = 3;

/** How long a step of a search should occupy the thread, in milliseconds. */
export const STEP_MS = { short: 2, long: 8 };

/** Lets other work run, once that of a search has taken a few milliseconds. */
export const createSearchPause = (accountId: string): Pause =>
  createPause(() => accountId, STEP_MS.short);

const COUNT =
  'SELECT count(*) AS turns FROM (SELECT 1 FROM word_index WHERE word_index MATCH ? LIMIT ?)';

/** Entries of an index whose sessions are looked up at once: each may be searched for several labels. */
const LOOKED_UP_AT_ONCE = 128;

type Filter = Omit<SessionFilter, 'order' | 'words'>;

/** The entries of an index that has few of them; undefined if none has. */
async function findFewEntries(
  current: Current,
  accountId: string,
  filter: Filter,
): Promise<string[] | undefined> {
  const pause = createSearchPause(accountId);
  for (const { from, key, where, parameters } of sessionIndexes(accountId, filter)) {
    const isLong = `SELECT 1 FROM ${from} WHERE ${where} LIMIT 1 OFFSET ?`;
    if (!current().get(sqliteSql(isLong), ...parameters, MOST_SCANNED_SESSIONS)) {
      const entries = sqliteSql(`SELECT ${key} AS entry FROM ${from} WHERE ${where}`);
      return current()
        .all(entries, ...parameters)
        .map(({ entry }) => entry as string);
    }
    await pause();
  }
  return undefined;
}

/**
 * The sessions that the filter leaves, in the order of the list, if scanning their turns is quicker than
 * the index of words, which would return all matching turns of the account. Undefined where that is quicker,
 * or where no index of sessions leaves few of them. Yields the thread between its steps.
 */
export async function selectSessionsToScan(
  current: Current,
  accountId: string,
  { words, after, order, limit: _limit, bytes: _bytes, ...filter }: Search,
): Promise<string[] | undefined> {
  if (!isFiltered(filter)) return undefined;
  const pause = createSearchPause(accountId);
  const matches = (await findFewEntries(current, accountId, filter))?.toSorted();
  if (!matches) return undefined;
  await pause();
  const ordered = order === 'oldest' ? matches : matches.toReversed();
  const isBeyond = (id: string): boolean =>
    after === undefined || (order === 'oldest' ? id > after : id < after);
  const entries = ordered.filter(isBeyond);
  const { where, parameters } = sessionConditions(accountId, filter);
  const lookUp = sqliteSql(
    `SELECT session_id, turns FROM json_each(?) AS entry CROSS JOIN {sessions} WHERE session_id = entry.value AND ${where} ORDER BY entry.key`,
  );
  const sessions: string[] = [];
  let turns = 0;
  for (let next = 0; next < entries.length; next += LOOKED_UP_AT_ONCE) {
    const ids = JSON.stringify(entries.slice(next, next + LOOKED_UP_AT_ONCE));
    for (const row of current().all(lookUp, ids, ...parameters)) {
      sessions.push(row['session_id'] as string);
      turns += row['turns'] as number;
    }
    if (turns > MOST_SCANNED_TURNS) return undefined;
    await pause();
  }
  const most = Math.floor(turns / INDEX_COST);
  for (const word of words) {
    const count = current().get(COUNT, word, most + 1)!['turns'] as number;
    if (count <= most) return undefined;
    await pause();
  }
  return sessions;
}

const SESSION = "SELECT * FROM sessions WHERE session_id = ? AND status <> 'erased'";

/** Most turns lack the word altogether; word boundaries are checked only in the remaining ones. */
const HAS_WORD = "instr(words, ?) AND instr(' ' || words || ' ', ?)";

/** Turns of a session that are scanned at once: each may have thousands of words. */
const SCANNED_AT_ONCE = 8;
const nextTurns = (words: readonly string[]): string =>
  `SELECT turn, ${words.map(() => HAS_WORD).join(' AND ')} AS matches FROM turn_words
    WHERE session_id = ? AND turn > ? ORDER BY turn LIMIT ${SCANNED_AT_ONCE}`;

/** The rows of those sessions that have a turn with all of the words, and were not just erased. */
export async function* scanSessions(
  current: Current,
  accountId: string,
  { sessions, words }: { sessions: readonly string[]; words: readonly string[] },
): AsyncGenerator<SqliteRow> {
  const sql = nextTurns(words);
  const tokens = words.flatMap((word) => [word, ` ${word} `]);
  const pause = createSearchPause(accountId);
  for (const session of sessions) {
    const matches: number[] = [];
    let scanned: SqliteRow[] = [];
    do {
      const last = (scanned.at(-1)?.['turn'] as number | undefined) ?? 0;
      scanned = current().all(sql, ...tokens, session, last);
      for (const row of scanned) if (row['matches'] === 1) matches.push(row['turn'] as number);
      await pause();
    } while (scanned.length === SCANNED_AT_ONCE && matches.length < MATCHES);
    const row = matches.length > 0 && current().get(SESSION, session);
    if (row) yield { ...row, matches: matches.join() };
  }
}
