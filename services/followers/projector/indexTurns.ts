import { setImmediate } from 'node:timers/promises';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { resolvesWithin } from '../../../shared/lib/time/resolvesWithin.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type { EndedTurn, TurnIndex, TurnWords } from '../../../shared/search/turnIndex.ts';
import {
  createTurnTokenizer,
  loadKeysOf,
  type IndexKeys,
} from '../../../shared/search/turnTokens.ts';
import { createGathering, type Gathering, type ProjectorLogger } from './projection.ts';
import { troubleReason } from './reports.ts';

const PAUSES = { firstMs: 100, longestMs: 5_000 };
/** Turns that arrive within this time are indexed together. */
const GATHER_MS = 100;
/** For this long after a batch of events was applied, indexing leaves time for other work. */
const BUSY_MS = 1_000;
/** The pause after a transaction while busy, as a multiple of its duration. */
const BUSY_PAUSE_FACTOR = 3;
/** The same while idle and removing rows and words of erased turns, which is not urgent. */
const FORGETTING_PAUSE_FACTOR = 1;
/** The longest of these pauses: a transaction may have waited for batches of events. */
const LONGEST_PAUSE_MS = 250;
/** A rebuild in a database replaces the index, and requests no work. */
const IDLE_MS = 5_000;
/** Yields to the event loop after this much work. */
const YIELD_AFTER_MS = 4;

interface Indexing {
  store: TurnIndex;
  keys: IndexKeys;
  logger: ProjectorLogger;
  /** Called with half a sentence on why turns can't be indexed; undefined once they can. */
  onTrouble?: (reason: string | undefined) => void;
  /** Pauses before turns are indexed together, for 100 ms by default. */
  gathering?: Pick<Gathering, 'pause'> | undefined;
  /** False while the disk is full: then only erased turns are removed. */
  hasSpace?: (() => Promise<boolean>) | undefined;
  /** The shortest time between two removals of erased words, in milliseconds. */
  forgetEveryMs?: number;
}

export interface Indexer extends AsyncDisposable {
  /** To be called after each batch of events, with whether the read models have caught up with the log. */
  onApplied(caughtUp: boolean): void;
}

/** Computes the tokens of turns. Turns that were indexed before need none. */
async function tokenize(
  { keys }: Indexing,
  turns: readonly (EndedTurn & { is_indexed?: boolean })[],
  onUnreadable: () => void,
): Promise<TurnWords[]> {
  await loadKeysOf(
    keys,
    turns.filter(({ is_indexed }) => !is_indexed),
  );
  const tokensOf = createTurnTokenizer(keys);
  const indexed: TurnWords[] = [];
  let yieldedAt = performance.now();
  for (const turn of turns) {
    const tokens = turn.is_indexed ? [] : await tokensOf(turn);
    if (!tokens) onUnreadable();
    indexed.push({ ...turn, tokens: tokens ?? [] });
    if (performance.now() - yieldedAt < YIELD_AFTER_MS) continue;
    await setImmediate();
    yieldedAt = performance.now();
  }
  return indexed;
}

/** True for turns that fill a step, so that others are probably left. */
function fillStep(turns: readonly EndedTurn[]): boolean {
  const characters = turns.reduce(
    (sum, { input, output }) => sum + input.length + (output?.length ?? 0),
    0,
  );
  return (
    turns.length >= LIMITS.search.turnsAtOnce || characters > LIMITS.search.charactersAtOnce / 2
  );
}

/**
 * Omits the turns of accounts with at least `turnsOfAccount` turns, or half of all turns, in the step:
 * those need no step out of order.
 */
function turnsOfOthers(
  step: readonly EndedTurn[],
  ofAccounts: readonly EndedTurn[],
): readonly EndedTurn[] {
  const counts = new Map<string, number>();
  for (const { account_id } of step) counts.set(account_id, (counts.get(account_id) ?? 0) + 1);
  const enough = Math.min(LIMITS.search.turnsOfAccount, step.length / 2);
  return ofAccounts.filter(({ account_id }) => (counts.get(account_id) ?? 0) < enough);
}

/**
 * Returns a function that indexes some of the turns that have ended, and returns false when there
 * were none. While turns wait, those that are next in the order of the log alternate with a few of
 * each other account: an account with few turns does not wait for all those of another one.
 * `pauseAfter` is called after each transaction, with the time when it and the query for its turns
 * began.
 */
function createIndexSteps(
  indexing: Indexing,
  pauseAfter: (startedAt: number) => Promise<void>,
  onUnreadable: () => void,
): () => Promise<boolean> {
  const { store, hasSpace } = indexing;
  let lastAccount = '';

  async function indexNext(): Promise<readonly EndedTurn[]> {
    const startedAt = performance.now();
    const turns = await store.unindexed();
    if (turns.length === 0) return turns;
    // No quota counts the index, which takes several times the bytes of the turns.
    if (hasSpace && !(await hasSpace()))
      throw new TurnlogError('storage_full', 'too little disk space is free', { retriable: true });
    await store.index(await tokenize(indexing, turns, onUnreadable));
    await pauseAfter(startedAt);
    return turns;
  }

  async function indexOthers(step: readonly EndedTurn[]): Promise<void> {
    const startedAt = performance.now();
    const ofAccounts = await store.unindexedOfAccounts(lastAccount);
    lastAccount = ofAccounts.last ?? '';
    const others = turnsOfOthers(step, ofAccounts.turns);
    if (others.length > 0) await store.index(await tokenize(indexing, others, onUnreadable), true);
    await pauseAfter(startedAt);
  }

  return async () => {
    const turns = await indexNext();
    if (fillStep(turns)) await indexOthers(turns);
    return turns.length > 0;
  };
}

/**
 * Keeps the index of words up to date, behind the projection: turns are indexed when
 * there is time, and erased turns, which searches no longer return, are removed a few at a time.
 * Failures are logged and retried until it is closed.
 */
export function startIndexer(indexing: Indexing): Indexer {
  const { store, logger, onTrouble, forgetEveryMs = LIMITS.search.forgetEveryMs } = indexing;
  const { gathering = createGathering(GATHER_MS) } = indexing;
  const closing = new AbortController();
  const { signal } = closing;
  const pauses = createBackoff(PAUSES);
  let appliedAt = -Infinity;
  let workRequested = Promise.withResolvers<void>();
  let unreadableLogged = false;
  let failed = false;
  let canForget = true;
  let forgetTimer: NodeJS.Timeout | undefined;

  function onUnreadable(): void {
    if (!unreadableLogged)
      logger.warn(
        {},
        'The texts of some turns cannot be read: searches by word will not find these turns',
      );
    unreadableLogged = true;
  }

  /** Removes some rows or words of erased turns. Returns false when there is nothing to do now. */
  async function forgetSome(): Promise<boolean> {
    const forgetResult = await store.forget?.(canForget);
    if (forgetResult === 'begun') {
      canForget = false;
      clearTimeout(forgetTimer);
      forgetTimer = setTimeout(() => {
        canForget = true;
        workRequested.resolve();
      }, forgetEveryMs).unref();
    }
    return forgetResult === 'begun' || forgetResult === 'some';
  }

  function endTrouble(): void {
    if (failed) onTrouble?.(undefined);
    failed = false;
  }

  /** Pauses for a multiple of the time since then; without `idleFactor` only while busy. */
  async function pauseAfter(startedAt: number, idleFactor = 0): Promise<void> {
    const now = performance.now();
    const factor = now - appliedAt < BUSY_MS ? BUSY_PAUSE_FACTOR : idleFactor;
    const pauseMs = Math.min(LONGEST_PAUSE_MS, (now - startedAt) * factor);
    await sleepUntilAborted(pauseMs, { signal });
  }

  const indexSome = createIndexSteps(indexing, pauseAfter, onUnreadable);

  /** While indexing fails, all is deleted first: that may make the room that it lacks. */
  async function forget(): Promise<boolean> {
    for (;;) {
      const startedAt = performance.now();
      const forgets = await forgetSome();
      if (!forgets) return false;
      await pauseAfter(startedAt, FORGETTING_PAUSE_FACTOR);
      if (!failed || signal.aborted) return true;
    }
  }

  async function runStep(): Promise<void> {
    const forgets = await forget();
    const indexes = await indexSome();
    if (failed) logger.info({}, 'Turns are indexed again');
    endTrouble();
    pauses.reset();
    const hasMore = indexes || forgets;
    if (!hasMore) await resolvesWithin(workRequested.promise, IDLE_MS);
    workRequested = Promise.withResolvers<void>();
    if (!hasMore) await gathering.pause(signal);
  }

  async function run(): Promise<void> {
    await workRequested.promise;
    while (!signal.aborted) {
      try {
        await runStep();
      } catch (error) {
        if (signal.aborted) return;
        const reason = troubleReason(error);
        if (!failed) logger.warn({ err: error }, `Turns cannot be indexed; retrying: ${reason}`);
        failed = true;
        onTrouble?.(reason);
        await sleepUntilAborted(pauses.next(), { signal });
      }
    }
  }

  const running = run();
  return {
    onApplied(caughtUp) {
      appliedAt = performance.now();
      if (caughtUp) workRequested.resolve();
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      clearTimeout(forgetTimer);
      workRequested.resolve();
      await running;
      // The next indexer works on another index.
      endTrouble();
    },
  };
}
