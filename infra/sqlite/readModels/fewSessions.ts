/**
 * Searches whose filter leaves few sessions: words are sought in the turns of these then, where the
 * index would give all the turns of the account that have them.
 */
import { yieldToEventLoop } from '../../../shared/lib/concurrency/yieldToEventLoop.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { Page } from '../../../shared/ports/readModels.ts';
import type { SessionFilter } from '../../../shared/sessions/sessionFilter.ts';
import type { Found, GenerationReader } from './generationReader.ts';
import { isFiltered, listedSessions, sessionWithWords } from './listedSessions.ts';

const { fewSessions: SESSIONS, turnsOfFew: TURNS } = LIMITS.search;

/** To find a turn in the index takes up to so many times as long as to look at one of a session. */
const LOOKED_AT_MEANWHILE = 3;
/** So long others wait for the thread, in milliseconds, as a rule. */
const PIECE_MS = 2;

const COUNT =
  'SELECT count(*) AS turns FROM (SELECT 1 FROM word_index WHERE word_index MATCH ? LIMIT ?)';

export type Search = Page & SessionFilter & { words: readonly string[] };

/** The sessions that are asked for, in their order, whatever their words; undefined where the index is quicker. */
export function fewSessions(
  { iterate, get }: GenerationReader,
  accountId: string,
  search: Search,
): string[] | undefined {
  if (!isFiltered(accountId, search)) return undefined;
  const [from, ...parameters] = listedSessions(accountId, search);
  const sessions: string[] = [];
  let turns = 0;
  const listed = `SELECT sessions.session_id, sessions.turns FROM ${from} LIMIT ${SESSIONS + 1}`;
  for (const found of iterate(listed, ...parameters)) {
    sessions.push(found['session_id'] as string);
    turns += found['turns'] as number;
    if (sessions.length > SESSIONS || turns > TURNS) return undefined;
  }
  const most = Math.floor(turns / LOOKED_AT_MEANWHILE);
  const isRare = (word: string): boolean =>
    (get(COUNT, word, most + 1)!['turns'] as number) <= most;
  return search.words.some(isRare) ? undefined : sessions;
}

/** The rows of those among them that have a turn with all of the words. */
export async function* foundAmong(
  current: () => GenerationReader,
  accountId: string,
  { sessions, words }: { sessions: readonly string[]; words: readonly string[] },
): AsyncGenerator<Found> {
  let since = performance.now();
  for (const session of sessions) {
    const [sql, ...parameters] = sessionWithWords(session, words);
    const row = current().get(sql, ...parameters);
    if (row && row['matches'] !== null) yield row;
    if (performance.now() - since < PIECE_MS) continue;
    await yieldToEventLoop(accountId);
    since = performance.now();
  }
}
