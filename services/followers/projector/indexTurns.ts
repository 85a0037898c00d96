import { setImmediate } from 'node:timers/promises';
import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import type { Keyring } from '../../../shared/eventlog/encryption/keyring.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type { TurnIndex } from '../../../shared/search/turnIndex.ts';
import { createTurnTokenizer } from '../../../shared/search/turnTokens.ts';
import type { ProjectorLogger } from './projection.ts';
import { troubleReason } from './reports.ts';

const PAUSES = { firstMs: 100, longestMs: 5_000 };
/** What comes in so long is indexed together. */
const GATHER_MS = 25;
/** For so long after an event was applied there may be more to do than to index. */
const BUSY_MS = 1_000;
/** Of the time, as a multiple of what was worked, that is left to others then. */
const LEFT_TO_OTHERS = 3;
/** The same at other times while words of erased turns are taken out: nobody waits for that. */
const LEFT_WHILE_FORGETTING = 1;
/** Others have the thread after so much work. */
const PIECE_MS = 4;

interface Indexing {
  store: TurnIndex;
  keys: Pick<Keyring, 'find' | 'ensureKey'>;
  logger: ProjectorLogger;
  /** Told half a sentence on why turns can't be indexed; undefined once they can. */
  onTrouble?: (reason: string | undefined) => void;
  /** How often words of erased turns are taken out at the most, in milliseconds. */
  forgetEveryMs?: number;
}

export interface Indexer extends AsyncDisposable {
  /** To be called when the read models have caught up with the log. */
  onCaughtUp(): void;
}

/** Indexes some of the turns that have ended; false where there were none. */
async function indexSome({ store, keys }: Indexing, onUnread: () => void): Promise<boolean> {
  const turns = await store.unindexed();
  if (turns.length === 0) return false;
  const tokensOf = createTurnTokenizer(keys);
  const found = [];
  let since = performance.now();
  for (const turn of turns) {
    const tokens = await tokensOf(turn);
    if (!tokens) onUnread();
    found.push({ ...turn, tokens: tokens ?? [] });
    if (performance.now() - since < PIECE_MS) continue;
    await setImmediate();
    since = performance.now();
  }
  await store.index(found);
  return true;
}

/**
 * Keeps the index of words up to date, behind the projection: what is shown first is indexed when
 * there is time, and what was erased, which nobody finds any more, leaves it a piece at a time. It needs
 * nobody's care: failures are logged and tried again until it is closed.
 */
export function startIndexer(indexing: Indexing): Indexer {
  const { store, logger, onTrouble, forgetEveryMs = LIMITS.search.forgetEveryMs } = indexing;
  const closing = new AbortController();
  const { signal } = closing;
  const pauses = createBackoff(PAUSES);
  let newsAt = 0;
  let asked = Promise.withResolvers<void>();
  let saidUnread = false;
  let failed = false;
  let mayForget = true;
  let waking: NodeJS.Timeout | undefined;

  function onUnread(): void {
    if (!saidUnread)
      logger.warn(
        {},
        'There are turns whose texts can not be read: they will not be found by words',
      );
    saidUnread = true;
  }

  /** Takes out some of what was erased; false where there is nothing to do now. */
  async function forgetSome(): Promise<boolean> {
    const forgotten = await store.forget?.(mayForget);
    if (forgotten === 'begun') {
      mayForget = false;
      waking = setTimeout(() => {
        mayForget = true;
        asked.resolve();
      }, forgetEveryMs).unref();
    }
    return forgotten === 'begun' || forgotten === 'some';
  }

  function endTrouble(): void {
    if (failed) onTrouble?.(undefined);
    failed = false;
  }

  async function goOn(): Promise<void> {
    const begun = performance.now();
    const indexes = await indexSome(indexing, onUnread);
    const forgets = await forgetSome();
    if (failed) logger.info({}, 'Turns are indexed again');
    endTrouble();
    pauses.reset();
    const now = performance.now();
    const more = indexes || forgets;
    if (!more) await asked.promise;
    const idle = forgets ? LEFT_WHILE_FORGETTING : 0;
    const left = now - newsAt < BUSY_MS ? LEFT_TO_OTHERS : idle;
    asked = Promise.withResolvers<void>();
    await sleepUntilAborted(more ? (now - begun) * left : GATHER_MS, { signal });
  }

  async function run(): Promise<void> {
    await asked.promise;
    while (!signal.aborted) {
      try {
        await goOn();
      } catch (error) {
        if (signal.aborted) return;
        const reason = troubleReason(error);
        if (!failed) logger.warn({ err: error }, `Turns can not be indexed and wait: ${reason}`);
        failed = true;
        onTrouble?.(reason);
        await sleepUntilAborted(pauses.next(), { signal });
      }
    }
  }

  const running = run();
  return {
    onCaughtUp() {
      newsAt = performance.now();
      asked.resolve();
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      clearTimeout(waking);
      asked.resolve();
      await running;
      // Another one goes on, with another index.
      endTrouble();
    },
  };
}
