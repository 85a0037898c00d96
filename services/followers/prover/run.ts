import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import { resolvesWithin } from '../../../shared/lib/time/resolvesWithin.ts';
import type { ActiveTrees } from '../../../shared/transparency/tileStore.ts';
import type { ProverReport } from '../../../shared/health/health.ts';
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

/** One sentence for the health; what is no error of ours may quote what is nobody's business. */
const reasonOf = (error: unknown): string =>
  isTurnlogError(error) ? error.message : 'It failed; the log says why.';

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
      const trouble = reasonOf(error);
      onReport({ state: 'active', trouble });
      if (trouble !== told)
        logger.warn({ err: error }, `The transparency log is not carried on. ${trouble}`);
      told = trouble;
    },
  };
}

/** Waits for its turn, and tells when that takes long. Errors: those of becomeActive. */
async function untilActive(
  { becomeActive, signal }: Prover,
  onState: (state: ProverReport['state']) => void,
): Promise<ActiveTrees | undefined> {
  const asked = becomeActive(signal);
  if (await resolvesWithin(asked, STAND_BY_MS)) return asked;
  onState('standing_by');
  const trees = await asked;
  // It may have much to catch up with before it signs.
  if (trees) onState('active');
  return trees;
}

/** Proves while this process is the one that does. Errors: those of growTree. */
async function proveWhenActive(
  prover: Prover,
  onState: (state: ProverReport['state']) => void,
): Promise<void> {
  await using opened = new AsyncDisposableStack();
  const trees = await untilActive(prover, onState);
  if (!trees) return;
  opened.defer(() => trees.close());
  const signal = AbortSignal.any([prover.signal, trees.lost]);
  while (!signal.aborted) await growTree({ ...prover, signal }, trees);
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
  while (!signal.aborted) {
    try {
      await proveWhenActive(watched, (state) => onReport({ state }));
    } catch (error) {
      if (signal.aborted) return;
      trouble.tell(error);
      await sleepUntilAborted(pauses.next(), { signal });
    }
  }
}
