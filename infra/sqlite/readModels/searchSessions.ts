/** Searches for sessions by words: in the index, or in the turns of the sessions that a filter leaves. */
import { yieldToEventLoop } from '../../../shared/lib/concurrency/yieldToEventLoop.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { TimedAnswer } from '../../../shared/lib/time/processorTime.ts';
import { createPage, type PageOf } from '../../../shared/readModels/page.ts';
import type { SqlDatabase } from '../../../shared/readModels/sqlDatabase.ts';
import { TABLES, type SessionRow } from '../../../shared/readModels/tables.ts';
import type { ListedSession } from '../../../shared/search/turnIndex.ts';
import { sessionConditions } from '../../../shared/sessions/sqlQueries.ts';
import type { ReaderThread } from './background/readerThread.ts';
import { bucketAt, bucketOf, firstRowid, matchBlocks, lastRowid, slotAt } from './buckets.ts';
import { isDamaged } from './failures.ts';
import type { GenerationReader } from './generationReader.ts';
import {
  createSearchPause,
  scanSessions,
  selectSessionsToScan,
  STEP_MS,
  type Current,
  type Search,
} from './scanSessions.ts';
import {
  bytesOfRow,
  readRows,
  rowDecoder,
  sqliteSql,
  type BoundedQuery,
  type SqliteRow,
} from './statements.ts';

const { matches: MATCHES } = LIMITS.search;

type Statement = [sql: string, ...parameters: BoundedQuery['parameters']];

/** Reads from the index, on the caller's thread or another one. */
type ReadIndex = (query: BoundedQuery) => Promise<TimedAnswer<SqliteRow[]>>;

/**
 * For several words FTS5 reads the turns of a range that have some of them until one has all, however
 * many those are: tens of milliseconds for 100,000 turns. With more turns than this in the index, threads
 * read it.
 */
const FEW_TURNS = 8_192;
const HAS_MORE_TURNS = `SELECT 1 FROM word_index_docsize LIMIT 1 OFFSET ${FEW_TURNS}`;

/**
 * For several words FTS5 searches for the first match from the start of the index, and for the end of
 * the matches up to the end of the index, whatever range of rows is requested: where no turn has all
 * words, each step would read the whole index. The blocks let it skip the rest. For one word it finds
 * the range directly.
 */
const inBuckets = (words: readonly string[], first: number, last: number): string =>
  (words.length > 1 ? [matchBlocks(first, last), ...words] : words).join(' AND ');

/** Turns that a step of a search takes from the index. */
const TURNS_AT_ONCE = 512;

/**
 * Selects the sessions of a range of buckets that match the search. If more than TURNS_AT_ONCE turns have
 * the words, every row has a `cut`: the bucket, in the order of the list, from which on nothing was
 * taken. Without a match the only row has no session.
 */
export function selectInBuckets(
  accountId: string,
  { words, after, order = 'newest', limit, ...filter }: Search,
  [first, last]: readonly [number, number],
): Statement {
  const { where, parameters } = sessionConditions(accountId, filter);
  const [direction, isBeyond, farthest] =
    order === 'newest' ? ['DESC', '<', 'min'] : ['ASC', '>', 'max'];
  const start = after === undefined ? [] : [after];
  const isTaken = `(SELECT cut IS NULL OR cut ${isBeyond} ${bucketAt('hit')} FROM step)`;
  return [
    sqliteSql(
      `WITH hits AS MATERIALIZED (SELECT rowid AS hit FROM word_index
         WHERE word_index MATCH ? AND rowid BETWEEN ${firstRowid('?')} AND ${lastRowid('?')}
         ORDER BY rowid ${direction} LIMIT ${TURNS_AT_ONCE + 1}),
       step AS MATERIALIZED (SELECT CASE WHEN count(*) > ${TURNS_AT_ONCE}
         THEN ${bucketAt(`${farthest}(hit)`)} END AS cut FROM hits)
       SELECT cut, listed.* FROM step LEFT JOIN (SELECT sessions.*, matches
         FROM (SELECT session_id, group_concat(turn) AS matches
           FROM hits CROSS JOIN turn_words ON turn_words.rowid = hit WHERE ${isTaken}
           GROUP BY session_id) AS found CROSS JOIN {sessions} USING (session_id)
         WHERE ${where}${start.map(() => ` AND sessions.session_id ${isBeyond} ?`).join('')}
         ORDER BY session_id ${direction} LIMIT ?) AS listed ORDER BY session_id ${direction}`,
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

/** The next turns of a bucket with the words, in the order of their rowids, from a slot of it. */
const IN_BUCKET = `SELECT session_id, turn, ${slotAt('word_index.rowid')} AS slot
  FROM word_index CROSS JOIN turn_words ON turn_words.rowid = word_index.rowid
  WHERE word_index MATCH ? AND word_index.rowid BETWEEN ${firstRowid('?')} + CAST(? AS INTEGER) AND ${lastRowid('?')}
  ORDER BY word_index.rowid LIMIT ${TURNS_AT_ONCE}`;

/**
 * The rows of the sessions found in one bucket with more turns than a step takes: of a session with
 * many turns, for the most part.
 */
async function* searchBucket(
  current: Current,
  read: ReadIndex,
  accountId: string,
  { bucket, words, after, order = 'newest', ...filter }: Search & { bucket: number },
): AsyncGenerator<SqliteRow> {
  const matches = new Map<string, number[]>();
  const pause = createSearchPause(accountId);
  const terms = inBuckets(words, bucket, bucket);
  let candidates: SqliteRow[] = [];
  let generation: number | undefined;
  do {
    const reader = current();
    // In another generation, turns may have other slots.
    if (reader.generation !== generation) {
      candidates = [];
      matches.clear();
    }
    ({ generation } = reader);
    const from = ((candidates.at(-1)?.['slot'] as number | undefined) ?? -1) + 1;
    ({ answer: candidates } = await read({
      sql: IN_BUCKET,
      parameters: [terms, bucket, from, bucket],
      limit: TURNS_AT_ONCE,
      bytes: Infinity,
    }));
    for (const row of candidates) {
      const session = row['session_id'] as string;
      const turns = matches.get(session) ?? [];
      if (turns.length < MATCHES) matches.set(session, [...turns, row['turn'] as number]);
    }
    await pause();
  } while (candidates.length === TURNS_AT_ONCE);
  const { where, parameters } = sessionConditions(accountId, filter);
  const isNewest = order === 'newest';
  const start = after === undefined ? [] : [after];
  const isBeyond = start.map(() => ` AND sessions.session_id ${isNewest ? '<' : '>'} ?`).join('');
  const sql = sqliteSql(
    `SELECT sessions.* FROM {sessions} WHERE ${where} AND sessions.session_id = ?${isBeyond}`,
  );
  const ids = [...matches.keys()].toSorted();
  for (const session of isNewest ? ids.toReversed() : ids) {
    const row = current().get(sql, ...parameters, session, ...start);
    if (row) yield { ...row, matches: matches.get(session)!.join() };
    await pause();
  }
}

/** A step of a search: the sessions found, and the bucket from which on it took nothing, if there is one. */
async function searchStep(
  read: ReadIndex,
  accountId: string,
  search: Search,
  buckets: readonly [number, number],
): Promise<{ rows: SqliteRow[]; cut: number | undefined; tookMs: number }> {
  const [sql, ...parameters] = selectInBuckets(accountId, search, buckets);
  const { limit, bytes } = search;
  const { answer: matchingRows, cpuMs } = await read({ sql, parameters, limit, bytes });
  const rows = matchingRows.map(({ cut: _cut, ...row }) => row);
  return {
    rows: rows.filter(({ session_id }) => session_id !== null),
    cut: (matchingRows[0]?.['cut'] as number | null | undefined) ?? undefined,
    tookMs: cpuMs,
  };
}

/**
 * The rows of the sessions found in the index, in the order of the list. The search runs in steps and
 * yields the thread between them. A step that took no longer than the quickest one is followed by one of
 * twice as many buckets, so that rare words take few steps, on a slow disk too.
 */
async function* searchIndex(
  current: Current,
  thread: ReaderThread,
  accountId: string,
  search: Search,
): AsyncGenerator<SqliteRow> {
  const isLong = search.words.length > 1 && current().get(HAS_MORE_TURNS) !== undefined;
  const read: ReadIndex = async (query) => {
    const reader = current();
    if (isLong) return thread.read(query, accountId);
    const startedAt = performance.now();
    return { answer: readRows(reader, query), cpuMs: performance.now() - startedAt };
  };
  const buckets = bucketRange(current(), search);
  if (!buckets) return;
  let { lowest, highest } = buckets;
  let quickestMs = Infinity;
  let steps = 0;
  for (let span = FIRST_SPAN; lowest <= highest;) {
    const size = Math.min(span, highest - lowest + 1);
    const first = search.order === 'oldest' ? lowest : highest - size + 1;
    const range = [first, first + size - 1] as const;
    const { rows, cut, tookMs } = await searchStep(read, accountId, search, range);
    quickestMs = Math.min(quickestMs, tookMs);
    const excessMs = tookMs - quickestMs;
    yield* rows;
    if (tookMs > STEP_MS.short) await yieldToEventLoop(accountId);
    const isOldest = search.order === 'oldest';
    // Of a bucket that a step cannot take, the turns are searched one after another.
    if (cut === (isOldest ? lowest : highest)) {
      yield* searchBucket(current, read, accountId, { ...search, bucket: cut });
      lowest = isOldest ? cut + 1 : lowest;
      highest = isOldest ? highest : cut - 1;
      continue;
    }
    if (isOldest) lowest = cut ?? lowest + size;
    else highest = cut ?? highest - size;
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
  thread: ReaderThread,
  accountId: string,
  search: Search,
): Promise<PageOf<ListedSession>> {
  const decode = rowDecoder(TABLES.sessions) as (row: SqliteRow) => SessionRow;
  const sessions = await selectSessionsToScan(current, accountId, search);
  const rows = sessions
    ? scanSessions(current, accountId, { sessions, words: search.words })
    : searchIndex(current, thread, accountId, search);
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
export function createWordSearch(current: Current, thread: ReaderThread) {
  let damaged: { generation: number; reason: string } | undefined;
  const search: SqlDatabase['searchSessions'] = async (accountId, query, signal) => {
    const { generation } = current();
    const currentUnlessAborted = (): GenerationReader => {
      signal?.throwIfAborted();
      return current();
    };
    try {
      return await findSessionsByWords(currentUnlessAborted, thread, accountId, query);
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
