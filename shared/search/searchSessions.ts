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

/** How often it is looked whether the index has come on. */
const LOOK_MS = 20;

/** What the words of sessions are sought in. */
export interface SearchSource {
  readModels: Pick<ReadModels, 'listSessions' | 'indexProgress'>;
  store: { keys: Pick<Keyring, 'ensureKey'> };
}

/** Which sessions are sought: `q` are words that one of their turns has. */
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
 * Waits until all is indexed that was shown when it was asked for, and says in which generation.
 */
async function untilIndexed(
  { readModels }: SearchSource,
  asked: IndexProgress,
  { until, signal }: Required<WaitLimits>,
): Promise<number> {
  let now = await readModels.indexProgress();
  while (!reached(now, asked)) {
    if (performance.now() > until) {
      const percent = percentOf(now.indexed ?? undefined, asked.ended ?? undefined);
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
 * The account's sessions that are asked for; with words, those in which one turn has all of them in
 * its input or output, whatever was acknowledged before.
 * Errors: `invalid_request` where there are no words or too many, `store_unavailable`, the reason
 * of the signal, which ends a search that nobody waits for any more.
 */
export async function findSessions(
  source: SearchSource,
  accountId: string,
  { q, ...asked }: Page & SessionSearch,
  signal?: AbortSignal,
): Promise<PageOf<ListedSession>> {
  const { readModels } = source;
  if (q === undefined) return readModels.listSessions(accountId, asked);
  const sought = wordsIn(q);
  const progress = await readModels.indexProgress();
  const bounds = { until: performance.now() + waitMs, signal };
  const tokenOf = await createWordTokenizer(source.store.keys, accountId);
  if (!tokenOf) return { rows: [], more: false };
  const words = [...new Set(Array.from(sought, tokenOf))];
  for (;;) {
    const generation = await untilIndexed(source, progress, bounds);
    const page = await readModels.listSessions(accountId, { ...asked, words }, signal);
    // One that came meanwhile had an empty index at first.
    if ((await readModels.indexProgress()).generation === generation) return page;
  }
}
