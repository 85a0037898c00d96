import { yieldToEventLoop } from '../../../shared/lib/concurrency/yieldToEventLoop.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { PageOf } from '../../../shared/ports/readModels.ts';
import type { ListedSession } from '../../../shared/search/turnIndex.ts';
import { TABLES, type SessionRow } from '../../../shared/readModels/tables.ts';
import { bucketAt, bucketOf } from './buckets.ts';
import { fewSessions, foundAmong, type Search } from './fewSessions.ts';
import type { Found, GenerationReader } from './generationReader.ts';
import { foundSessions } from './listedSessions.ts';
import { pageOfSearch } from './pageOf.ts';
import { rowDecoder } from './statements.ts';

const { matches: MATCHES, countedTurns } = LIMITS.search;

/** How far the index is. */
export const INDEX_PROGRESS = `SELECT
  (SELECT max(end_position) FROM turns WHERE end_position IS NOT NULL) AS ended,
  (SELECT position FROM indexed) AS indexed`;

/** How many turns wait for it. */
export const COUNT_UNINDEXED = `SELECT count(*) AS waiting
  FROM (SELECT 1 FROM turns WHERE end_position > coalesce((SELECT position FROM indexed), '') LIMIT ${countedTurns})`;

const BUCKETS = `SELECT (SELECT ${bucketAt('min(rowid)')} FROM turn_words) AS lowest, (SELECT ${bucketAt('max(rowid)')} FROM turn_words) AS highest`;

/** The buckets that are searched first: a second's. */
const FIRST_SPAN = 1_000;
/** After so many pieces none has fewer buckets than twice as many: a search has an end, however slow. */
const DOUBLED_AFTER = 64;
/** So long a piece of a search may have the thread to itself, in milliseconds, as a rule. */
const PIECE_MS = { short: 2, long: 8 };

/** The first of the turns whose numbers are in the list. */
const turnsIn = (list: string): number[] =>
  list
    .split(',')
    .map(Number)
    .toSorted((a, b) => a - b)
    .slice(0, MATCHES);

/** The lowest and the highest bucket in which a page can have sessions; undefined where none can. */
function bucketsOf(
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
 * The rows of the sessions that were found, in the order of the list, in pieces between which others
 * have the thread. A piece that took no longer than any piece does is followed by one of twice as many
 * buckets, so that words of which there are few are looked for in few pieces, on a slow disk too.
 */
async function* found(
  current: () => GenerationReader,
  accountId: string,
  search: Search,
): AsyncGenerator<Found> {
  const buckets = bucketsOf(current(), search);
  if (!buckets) return;
  let { lowest, highest } = buckets;
  let leastMs = Infinity;
  let pieces = 0;
  for (let span = FIRST_SPAN; lowest <= highest;) {
    const begun = performance.now();
    const size = Math.min(span, highest - lowest + 1);
    const first = search.order === 'oldest' ? lowest : highest - size + 1;
    const [from, ...parameters] = foundSessions(accountId, search, [first, first + size - 1]);
    const rows = current().all(`SELECT sessions.*, matches FROM ${from}`, ...parameters);
    const took = performance.now() - begun;
    leastMs = Math.min(leastMs, took);
    const tookMore = took - leastMs;
    yield* rows;
    if (took > PIECE_MS.short) await yieldToEventLoop(accountId);
    if (search.order === 'oldest') lowest += size;
    else highest -= size;
    pieces += 1;
    const least = 2 ** Math.floor(pieces / DOUBLED_AFTER);
    if (tookMore < PIECE_MS.short) span *= 2;
    else if (tookMore > PIECE_MS.long) span = Math.floor(span / 2);
    span = Math.max(span, least);
  }
}

/**
 * A page of the sessions in which one turn has all of the words. Errors: `store_unavailable`.
 */
export async function searchSessions(
  current: () => GenerationReader,
  accountId: string,
  search: Search,
): Promise<PageOf<ListedSession>> {
  const decode = rowDecoder(TABLES.sessions) as (row: Found) => SessionRow;
  const withMatches = ({ matches, ...row }: Found): ListedSession => ({
    ...decode(row),
    matches: turnsIn(String(matches)),
  });
  const sessions = fewSessions(current(), accountId, search);
  const rows = sessions
    ? foundAmong(current, accountId, { sessions, words: search.words })
    : found(current, accountId, search);
  return pageOfSearch(search, rows, withMatches);
}
