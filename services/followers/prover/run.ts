import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { leadUntilAborted } from '../../../shared/lib/concurrency/leaderTask.ts';
import { publicReason } from '../../../shared/lib/errors/errorSummary.ts';
import { resolvesWithin } from '../../../shared/lib/time/resolvesWithin.ts';
import type { ActiveTrees } from '../../../shared/transparency/tileStore.ts';
import { growTree } from './grow.ts';
import type { Prover } from './prover.ts';

const PAUSES = { firstMs: 100, longestMs: 5_000 };
/**
 * A node that has fallen behind knows less of the log for a moment, and a log that was restored has
 * another tree: only what is found twice in a row is told.
 */
const LOOKS = 2;
const LOOKED_AT_TWICE = ['log_changed', 'log_restored'] as const;
/** Who has not become active by then stands by. */
const STAND_BY_MS = 500;

/** What is said of failures: each once, until something was signed again. */
function createTrouble({ onReport, logger }: Pick<Prover, 'onReport' | 'logger'>) {
  let told: string | undefined;
  let looks = 0;
  return {
    over(): void {
      if (told !== undefined) logger.info({}, 'The transparency log is carried on');
      told = undefined;
      looks = 0;
    },
    tell(error: unknown): void {
      looks = LOOKED_AT_TWICE.some((code) => isTurnlogError(error, code)) ? looks + 1 : LOOKS;
      if (looks < LOOKS) return;
      const trouble = publicReason(error);
      onReport({ state: 'active', trouble });
      if (trouble !== told)
        logger.warn({ err: error }, `The transparency log is not carried on. ${trouble}`);
      told = trouble;
    },
  };
}

/** Acquires leadership, and reports `standing_by` while that takes long. */
async function acquireAndReport({
  acquireLeadership: becomeActive,
  onReport,
  signal,
}: Prover): Promise<ActiveTrees | undefined> {
  const acquiring = becomeActive(signal);
  if (await resolvesWithin(acquiring, STAND_BY_MS)) return acquiring;
  onReport({ state: 'standing_by' });
  const trees = await acquiring;
  // It may have much to catch up with before it signs.
  if (trees) onReport({ state: 'active' });
  return trees;
}

/**
 * Gives every event of the log a leaf, in order, first what is there, then live, and signs
 * checkpoints, until the signal aborts. A failure is told and followed by a pause, from 0.1 s doubling
 * to 5 s, in which another process may take the place, and by going on from what is kept. Nothing is
 * left out, and nothing is signed that does not continue what was signed before.
 */
export async function runProver(prover: Prover): Promise<void> {
  const { signal, onReport } = prover;
  const pauses = createBackoff(PAUSES);
  const trouble = createTrouble(prover);
  const watched: Prover = {
    ...prover,
    onReport(report) {
      pauses.reset();
      trouble.over();
      onReport(report);
    },
  };
  await leadUntilAborted({
    acquireLeadership: () => acquireAndReport(prover),
    async lead(trees, term) {
      while (!term.aborted) await growTree({ ...watched, signal: term }, trees);
      return 0;
    },
    onFailure(error) {
      if (signal.aborted) return 0;
      trouble.tell(error);
      return pauses.next();
    },
    signal,
  });
}
