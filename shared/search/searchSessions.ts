import { storeUnavailableError, TurnlogError } from '../lib/errors/turnlogError.ts';
import type { Keyring } from '../eventlog/encryption/keyring.ts';
import { LIMITS } from '../limits.ts';
import { sleep, type WaitLimits } from '../lib/time/sleep.ts';
import type { Page, PageOf, ReadModels } from '../ports/readModels.ts';
import type { IndexProgress, ListedSession } from './turnIndex.ts';
import { percentOf } from '../projections/progress.ts';
import type { SessionFilter } from '../sessions/sessionFilter.ts';
import { parseSearchWords } from './words.ts';
import { createWordTokenizer } from './wordTokens.ts';

const { queryWords, waitMs } = LIMITS.search;

/** Interval between checks of the index's progress. */
const LOOK_MS = 20;

/** Dependencies of a search. */
export interface SearchSource {
  readModels: Pick<ReadModels, 'listSessions' | 'indexProgress'>;
  store: { keys: Pick<Keyring, 'ensureKey'> };
}

/** Search conditions. `q` contains words that must all occur in one turn. */
export type SessionSearch = SessionFilter & { q?: string };

function invalid(what: string): TurnlogError {
  const message = `"q" ${what}.`;
  return new TurnlogError('invalid_request', `The query is not valid: ${message}`, {
    details: { q: { message, path: 'query/q' } },
  });
}

function wordsIn(q: string): Set<string> {
  const words = parseSearchWords(q);
  if (words.size === 0) throw invalid('must have a letter or a digit');
  if (words.size > queryWords) throw invalid(`must not have more than ${queryWords} words`);
  return words;
}

const reached = ({ indexed }: IndexProgress, { ended }: IndexProgress): boolean =>
  ended === null || (indexed !== null && indexed >= ended);

/**
 * Waits until the index includes all turns that were visible when the search began. Resolves with
 * the generation of the index.
 */
async function untilIndexed(
  { readModels }: SearchSource,
  target: IndexProgress,
  { until, signal }: Required<WaitLimits>,
): Promise<number> {
  let now = await readModels.indexProgress();
  while (!reached(now, target)) {
    if (performance.now() > until) {
      const percent = percentOf(now.indexed ?? undefined, target.ended ?? undefined);
      throw storeUnavailableError(
        `The index that words are found by is not up to date: it has come to ${Math.floor(percent)} % of the log.`,
      );
    }
    await sleep(LOOK_MS, signal);
    now = await readModels.indexProgress();
  }
  return now.generation;
}

/**
 * Lists the account's sessions. With words, lists those with a turn whose input or output contains
 * all words; turns acknowledged before the search are included. Errors: `invalid_request` for no
 * words or too many, `store_unavailable`, the abort reason.
 */
export async function findSessions(
  source: SearchSource,
  accountId: string,
  { q, ...filter }: Page & SessionSearch,
  signal?: AbortSignal,
): Promise<PageOf<ListedSession>> {
  const { readModels } = source;
  if (q === undefined) return readModels.listSessions(accountId, filter, signal);
  const queryTerms = wordsIn(q);
  const progress = await readModels.indexProgress();
  const bounds = { until: performance.now() + waitMs, signal };
  const tokenOf = await createWordTokenizer(source.store.keys, accountId);
  if (!tokenOf) return { rows: [], more: false };
  const words = [...new Set(Array.from(queryTerms, tokenOf))];
  for (;;) {
    const generation = await untilIndexed(source, progress, bounds);
    const page = await readModels.listSessions(accountId, { ...filter, words }, signal);
    // Otherwise a new generation has appeared, whose index started empty.
    if ((await readModels.indexProgress()).generation === generation) return page;
  }
}
