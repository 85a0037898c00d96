/** Searches for sessions by words: in the index, or in the turns of the sessions that a filter leaves. */
import type { SQLInputValue } from 'node:sqlite';
import { yieldToEventLoop } from '../../../shared/lib/concurrency/yieldToEventLoop.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { createPage, type Page, type PageOf } from '../../../shared/readModels/page.ts';
import type { SqlDatabase } from '../../../shared/readModels/sqlDatabase.ts';
import { TABLES, type SessionRow } from '../../../shared/readModels/tables.ts';
import type { ListedSession, WordSearch } from '../../../shared/search/turnIndex.ts';
import {
  isFiltered,
  sessionConditions,
  sessionIndexes,
  sessionListing,
} from '../../../shared/sessions/sqlQueries.ts';
import { bucketAt, bucketOf, firstRowid, inBlocks, lastRowid } from './buckets.ts';
import { isDamaged } from './failures.ts';
import type { GenerationReader } from './generationReader.ts';
import { bytesOfRow, rowDecoder, selectListing, sqliteSql, type SqliteRow } from './statements.ts';

const {
  matches: MATCHES,
  fewSessions: MOST_SCANNED_SESSIONS,
  turnsOfFew: MOST_SCANNED_TURNS,
} = LIMITS.search;

type Search = Page & WordSearch;
type Current = () => GenerationReader;
type Statement = [sql: string, ...parameters: SQLInputValue[]];

/** Finding a turn in the index takes up to this many times as long as looking at one of a session. */
const INDEX_COST = 3;

/** How long a step of a search should occupy the thread, in milliseconds. */
const STEP_MS = { short: 2, long: 8 };

const COUNT =
  'SELECT count(*) AS turns FROM (SELECT 1 FROM word_index WHERE word_index MATCH ? LIMIT ?)';

/**
 * The sessions that the filter leaves, in the order of the list, if scanning their turns is quicker than
 * the index of words, which would return all matching turns of the account. Undefined where that is quicker,
 * or where no index of sessions leaves few of them.
 */
export function selectSessionsToScan(
  { iterate, get }: GenerationReader,
  accountId: string,
  { words, after, limit: _limit, bytes: _bytes, ...filter }: Search,
): string[] | undefined {
  if (!isFiltered(filter)) return undefined;
  const index = sessionIndexes(accountId, filter).find(({ from, where, parameters }) => {
    const sql = sqliteSql(`SELECT 1 FROM ${from} WHERE ${where} LIMIT 1 OFFSET ?`);
    return get(sql, ...parameters, MOST_SCANNED_SESSIONS) === undefined;
  });
  if (!index) return undefined;
  const { listing, parameters } = sessionListing(accountId, filter, index);
  const sql = selectListing(listing, {
    columns: 'sessions.session_id, sessions.turns',
    isContinued: after !== undefined,
  });
  const start = after === undefined ? [] : [after];
  const sessions: string[] = [];
  let turns = 0;
  for (const row of iterate(`${sql} LIMIT ${MOST_SCANNED_SESSIONS + 1}`, ...parameters, ...start)) {
    sessions.push(row['session_id'] as string);
    turns += row['turns'] as number;
    if (sessions.length > MOST_SCANNED_SESSIONS || turns > MOST_SCANNED_TURNS) return undefined;
  }
  const most = Math.floor(turns / INDEX_COST);
  const isRare = (word: string): boolean =>
    (get(COUNT, word, most + 1)!['turns'] as number) <= most;
  return words.some(isRare) ? undefined : sessions;
}

/** Most turns lack the word altogether; word boundaries are checked only in the remaining ones. */
const HAS_WORD = " AND instr(words, ?) AND instr(' ' || words || ' ', ?)";

/** A session's row with those of its turns that have all of the words, unless it was just erased. */
const sessionWithWords = (sessionId: string, words: readonly string[]): Statement => [
  `SELECT sessions.*, (SELECT group_concat(turn) FROM turn_words
    WHERE turn_words.session_id = sessions.session_id${HAS_WORD.repeat(words.length)}) AS matches
    FROM sessions WHERE session_id = ? AND status <> 'erased'`,
  ...words.flatMap((word) => [word, ` ${word} `]),
  sessionId,
];

/** The rows of those sessions that have a turn with all of the words. */
async function* scanSessions(
  current: Current,
  accountId: string,
  { sessions, words }: { sessions: readonly string[]; words: readonly string[] },
): AsyncGenerator<SqliteRow> {
  let startedAt = performance.now();
  for (const session of sessions) {
    const [sql, ...parameters] = sessionWithWords(session, words);
    const row = current().get(sql, ...parameters);
    if (row && row['matches'] !== null) yield row;
    if (performance.now() - startedAt < STEP_MS.short) continue;
    await yieldToEventLoop(accountId);
    startedAt = performance.now();
  }
}

/** The sessions that have a turn with all of the words in a range of buckets, with those turns. */
const FOUND = `(SELECT session_id, group_concat(turn) AS matches
  FROM word_index CROSS JOIN turn_words ON turn_words.rowid = word_index.rowid
  WHERE word_index MATCH ? AND word_index.rowid BETWEEN ${firstRowid('?')} AND ${lastRowid('?')}
  GROUP BY session_id) AS found`;

/**
 * For several words FTS5 searches for the first match from the start of the index, and for the end of
 * the matches up to the end of the index, whatever range of rows is requested: where no turn has all
 * words, each step would read the whole index. The blocks let it skip the rest. For one word it finds
 * the range directly.
 */
const inBuckets = (words: readonly string[], first: number, last: number): string =>
  (words.length > 1 ? [inBlocks(first, last), ...words] : words).join(' AND ');

/** Selects sessions that match the search in a range of buckets. CROSS JOIN starts with the index. */
export function selectInBuckets(
  accountId: string,
  { words, after, order = 'newest', limit, ...filter }: Search,
  [first, last]: readonly [number, number],
): Statement {
  const { where, parameters } = sessionConditions(accountId, filter);
  const [direction, isBeyond] = order === 'newest' ? ['DESC', '<'] : ['ASC', '>'];
  const start = after === undefined ? [] : [after];
  return [
    sqliteSql(
      `SELECT sessions.*, matches FROM ${FOUND} CROSS JOIN {sessions} USING (session_id)
       WHERE ${where}${start.map(() => ` AND sessions.session_id ${isBeyond} ?`).join('')}
       ORDER BY session_id ${direction} LIMIT ?`,
    ),
    inBuckets(words, first, last),
    first,
    last,
    ...parameters,
    ...start,
    limit + 1,
  ];
}

const BUCKETS = `SELECT (SELECT ${bucketAt('min(rowid)')} FROM turn_words) AS lowest, (SELECT ${bucketAt('max(rowid)')} FROM turn_words) AS highest`;

/** How many buckets the first step searches: one second. */
const FIRST_SPAN = 1_000;
/** The smallest span doubles after this many steps, so that a search ends however slow it is. */
const DOUBLED_AFTER = 64;

/** The lowest and the highest bucket that can hold sessions of the page; undefined if none can. */
function bucketRange(
  { get }: GenerationReader,
  { after, order }: Search,
): { lowest: number; highest: number } | undefined {
  const { lowest, highest } = get(BUCKETS) as { lowest: number | null; highest: number | null };
  if (lowest === null || highest === null) return undefined;
  if (after === undefined) return { lowest, highest };
  const start = bucketOf(after);
  return order === 'oldest'
    ? { lowest: Math.max(lowest, start), highest }
    : { lowest, highest: Math.min(highest, start) };
}

/**
 * The rows of the sessions found in the index, in the order of the list. The search runs in steps and
 * yields the thread between them. A step that took no longer than the quickest one is followed by one of
 * twice as many buckets, so that rare words take few steps, on a slow disk too.
 */
async function* searchIndex(
  current: Current,
  accountId: string,
  search: Search,
): AsyncGenerator<SqliteRow> {
  const buckets = bucketRange(current(), search);
  if (!buckets) return;
  let { lowest, highest } = buckets;
  let quickestMs = Infinity;
  let steps = 0;
  for (let span = FIRST_SPAN; lowest <= highest;) {
    const startedAt = performance.now();
    const size = Math.min(span, highest - lowest + 1);
    const first = search.order === 'oldest' ? lowest : highest - size + 1;
    const [sql, ...parameters] = selectInBuckets(accountId, search, [first, first + size - 1]);
    const rows = current().all(sql, ...parameters);
    const tookMs = performance.now() - startedAt;
    quickestMs = Math.min(quickestMs, tookMs);
    const excessMs = tookMs - quickestMs;
    yield* rows;
    if (tookMs > STEP_MS.short) await yieldToEventLoop(accountId);
    if (search.order === 'oldest') lowest += size;
    else highest -= size;
    steps += 1;
    const smallest = 2 ** Math.floor(steps / DOUBLED_AFTER);
    if (excessMs < STEP_MS.short) span *= 2;
    else if (excessMs > STEP_MS.long) span = Math.floor(span / 2);
    span = Math.max(span, smallest);
  }
}

/** The first turns of a comma-separated list. */
const firstTurns = (list: string): number[] =>
  list
    .split(',')
    .map(Number)
    .toSorted((a, b) => a - b)
    .slice(0, MATCHES);

/** A page of the sessions of which one turn has all of the words. */
export async function findSessionsByWords(
  current: Current,
  accountId: string,
  search: Search,
): Promise<PageOf<ListedSession>> {
  const decode = rowDecoder(TABLES.sessions) as (row: SqliteRow) => SessionRow;
  const sessions = selectSessionsToScan(current(), accountId, search);
  const rows = sessions
    ? scanSessions(current, accountId, { sessions, words: search.words })
    : searchIndex(current, accountId, search);
  const { page, add } = createPage<ListedSession>(search);
  for await (const row of rows) {
    const { matches, ...session } = row;
    const isOnPage = add(bytesOfRow(row), () => ({
      ...decode(session),
      matches: firstTurns(String(matches)),
    }));
    if (!isOnPage) break;
  }
  return page;
}

/**
 * Searches, and remembers if one found the word index damaged: the file may be overwritten where nothing
 * else reads it. Only another generation, which has another file, clears the damage.
 */
export function createWordSearch(current: Current) {
  let damaged: { generation: number; reason: string } | undefined;
  const search: SqlDatabase['searchSessions'] = async (accountId, query, signal) => {
    const { generation } = current();
    const currentUnlessAborted = (): GenerationReader => {
      signal?.throwIfAborted();
      return current();
    };
    try {
      return await findSessionsByWords(currentUnlessAborted, accountId, query);
    } catch (error) {
      const { cause } = error as Error;
      if (isDamaged(cause)) damaged = { generation, reason: (cause as Error).message };
      throw error;
    }
  };
  return {
    searchSessions: search,
    /** One sentence; undefined unless a search of this generation has found damage. */
    damage: (): string | undefined =>
      damaged?.generation === current().generation
        ? `The index of words is damaged (${damaged.reason}): rebuild the read models.`
        : undefined,
  };
}
