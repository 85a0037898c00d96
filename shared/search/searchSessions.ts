import { storeUnavailableError, TurnlogError } from '../lib/errors/turnlogError.ts';
import type { Keyring } from '../eventlog/encryption/keyring.ts';
import { LIMITS } from '../limits.ts';
import { createBackoff } from '../lib/time/backoff.ts';
import { sleep, type WaitLimits } from '../lib/time/sleep.ts';
import type { Page, PageOf, ReadModels } from '../ports/readModels.ts';
import { earliestChange, type IndexProgress, type ListedSession } from './turnIndex.ts';
import type { SessionFilter } from '../sessions/sessionFilter.ts';
import { isShortPrefix, parseSearchTerms } from './words.ts';
import { createWordTokenizer } from './wordTokens.ts';

const { queryWords, waitMs, prefixCharacters } = LIMITS.search;

/** Pauses between checks of the index. In SQLite, a check may take a millisecond of the main thread. */
const LOOK_PAUSES = { firstMs: 20, longestMs: 100 };

/** Dependencies of a search. */
export interface SearchSource {
  readModels: Pick<ReadModels, 'listSessions' | 'indexProgress' | 'hasUnindexed'>;
  store: { keys: Pick<Keyring, 'ensureKey'> };
  /** Called before sessions are read, once the index is up to date or the wait for it is over. */
  beforeRead?: () => Promise<void>;
}

/** Search conditions. `q` contains words, or beginnings of words, that must all occur in one turn. */
export type SessionSearch = SessionFilter & { q?: string };

function queryError(what: string): TurnlogError {
  const message = `"q" ${what}.`;
  return new TurnlogError('invalid_request', `The query is not valid: ${message}`, {
    details: { q: { message, path: 'query/q' } },
  });
}

function termsIn(q: string): Set<string> {
  const terms = parseSearchTerms(q);
  if (terms.size === 0) throw queryError('must have a letter or a digit');
  if (terms.size > queryWords) throw queryError(`must not have more than ${queryWords} words`);
  const short = [...terms].find(isShortPrefix);
  if (short !== undefined)
    throw queryError(`must have at least ${prefixCharacters} characters before "*", as in "inv*"`);
  return terms;
}

const hasIndexed = ({ indexed }: IndexProgress, { ended }: IndexProgress): boolean =>
  ended === null || (indexed !== null && indexed >= ended);

/** How far the index is, where it does not include all turns of the account yet. */
interface IndexLag {
  /** All turns that ended before this time are found. */
  complete_until: string;
}

interface IndexState {
  generation: number;
  lag: IndexLag | undefined;
}

/** A page of a search, and how far the index is if it did not include all turns in time. */
type SearchPage = PageOf<ListedSession> & { index?: IndexLag };

/** The state of the index for the turns of an account that were visible when a search began. */
async function readIndexState(
  { readModels }: SearchSource,
  accountId: string,
  target: IndexProgress,
): Promise<IndexState> {
  const now = await readModels.indexProgress();
  const { generation, unindexed_from: from } = now;
  if (hasIndexed(now, target) || from === null) return { generation, lag: undefined };
  const isBehind = await readModels.hasUnindexed(accountId, earliestChange(from), target.ended!);
  return { generation, lag: isBehind ? { complete_until: from } : undefined };
}

/** Waits until the index includes the account's turns, or the time is over. */
async function waitUntilIndexed(
  source: SearchSource,
  accountId: string,
  { target, until, signal }: Required<WaitLimits> & { target: IndexProgress },
): Promise<IndexState> {
  const pauses = createBackoff(LOOK_PAUSES);
  for (;;) {
    const state = await readIndexState(source, accountId, target);
    const leftMs = until - performance.now();
    if (!state.lag || leftMs <= 0) return state;
    await sleep(Math.min(pauses.next(), leftMs), signal);
  }
}

/**
 * Lists the account's sessions. With words, lists those with a turn whose input or output contains
 * all words. Turns acknowledged before the search are included, unless the page says how far the
 * index is. Errors: `invalid_request` for no words or too many, `store_unavailable`, the abort
 * reason.
 */
export async function searchSessions(
  source: SearchSource,
  accountId: string,
  { q, ...filter }: Page & SessionSearch,
  signal?: AbortSignal,
): Promise<SearchPage> {
  const { readModels, beforeRead } = source;
  if (q === undefined) {
    await beforeRead?.();
    return readModels.listSessions(accountId, filter, signal);
  }
  const queryTerms = termsIn(q);
  const target = await readModels.indexProgress(accountId);
  const bounds = { target, until: performance.now() + waitMs, signal };
  const tokenOf = await createWordTokenizer(source.store.keys, accountId);
  if (!tokenOf) return { rows: [], more: false };
  const words = [...new Set(Array.from(queryTerms, tokenOf))];
  for (;;) {
    const { generation, lag } = await waitUntilIndexed(source, accountId, bounds);
    await beforeRead?.();
    const page = await readModels.listSessions(accountId, { ...filter, words }, signal);
    // Otherwise a new generation has appeared, whose index started empty.
    if ((await readModels.indexProgress()).generation === generation)
      return { ...page, ...(lag && { index: lag }) };
  }
}

/**
 * Like searchSessions, for callers that need every session: throws `store_unavailable` while the
 * index does not include all turns.
 */
export async function findSessions(
  ...[source, accountId, search, signal]: Parameters<typeof searchSessions>
): Promise<PageOf<ListedSession>> {
  const { index, ...page } = await searchSessions(source, accountId, search, signal);
  if (!index) return page;
  throw storeUnavailableError(
    `The index that words are found by is not up to date: it includes the turns that ended before ${index.complete_until}.`,
  );
}
