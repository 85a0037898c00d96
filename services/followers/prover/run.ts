import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { leadUntilAborted } from '../../../shared/lib/concurrency/leaderTask.ts';
import { publicReason } from '../../../shared/lib/errors/errorSummary.ts';
import { resolvesWithin } from '../../../shared/lib/time/resolvesWithin.ts';
import type { ActiveTrees } from '../../../shared/transparency/tileStore.ts';
import { growTree } from './growTree.ts';
import type { Prover } from './prover.ts';

const PAUSES = { firstMs: 100, longestMs: 5_000 };
/**
 * A node of the cluster that lags behind may lack the latest events for a moment, and a restored log
 * has another tree: these failures are reported when they occur twice in a row.
 */
const CHECKS = 2;
const CHECKED_TWICE = ['log_changed', 'log_restored'] as const;
/** A process that has not become active by then stands by. */
const STAND_BY_MS = 500;

/** Reports failures, and logs each once until a checkpoint was signed again. */
function createFailureReporter({ onReport, logger }: Pick<Prover, 'onReport' | 'logger'>) {
  let logged: string | undefined;
  let checks = 0;
  return {
    onRecovery(): void {
      if (logged !== undefined) logger.info({}, 'The transparency log continues');
      logged = undefined;
      checks = 0;
    },
    onFailure(error: unknown): void {
      checks = CHECKED_TWICE.some((code) => isTurnlogError(error, code)) ? checks + 1 : CHECKS;
      if (checks < CHECKS) return;
      const trouble = publicReason(error);
      onReport({ state: 'active', trouble });
      if (trouble !== logged)
        logger.warn({ err: error }, `The transparency log can't be continued. ${trouble}`);
      logged = trouble;
    },
  };
}

/** Acquires leadership, and reports `standing_by` while that takes long. */
async function acquireAndReport({
  acquireLeadership: acquire,
  onReport,
  signal,
}: Prover): Promise<ActiveTrees | undefined> {
  const acquiring = acquire(signal);
  if (await resolvesWithin(acquiring, STAND_BY_MS)) return acquiring;
  onReport({ state: 'standing_by' });
  const trees = await acquiring;
  // It may have to catch up for long before it signs.
  if (trees) onReport({ state: 'active' });
  return trees;
}

/**
 * Adds a leaf for every event of the log, in order, first for the existing ones, then for new ones, and
 * signs checkpoints, until the signal aborts. A failure is reported; after a pause, from 0.1 s doubling
 * to 5 s, in which another process may take over, the prover resumes from the stored tree. It skips no
 * event, and signs only trees that extend the last checkpoint.
 */
export async function runProver(prover: Prover): Promise<void> {
  const { signal, onReport, untilCompared } = prover;
  await untilCompared(signal);
  const signedHere = new Map<string, number>();
  const pauses = createBackoff(PAUSES);
  const failures = createFailureReporter(prover);
  const watched: Prover = {
    ...prover,
    onReport(report) {
      pauses.reset();
      failures.onRecovery();
      onReport(report);
    },
  };
  await leadUntilAborted({
    acquireLeadership: () => acquireAndReport(prover),
    async lead(trees, term) {
      while (!term.aborted) await growTree({ ...watched, signal: term }, trees, signedHere);
      return 0;
    },
    onFailure(error) {
      if (signal.aborted) return 0;
      failures.onFailure(error);
      return pauses.next();
    },
    signal,
  });
}
