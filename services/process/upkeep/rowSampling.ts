import type { DamagedRows } from '../../../shared/readModels/integrity/damagedRows.ts';
import { createRowSampler } from '../../../shared/readModels/integrity/sampleRows.ts';
import { damagedRowsHealth } from '../health/reportDamage.ts';
import type { ProcessPart } from '../processParts.ts';
import { startPolling } from './periodicTask.ts';

/** Rows are compared each time after so many polls, which are a second apart. */
const POLLS_OF_STEP = 3;

interface RowSampling extends Omit<Parameters<typeof createRowSampler>[0], 'onReplaced'> {
  damaged: DamagedRows;
  /** Drops what checks of rows remember of the log. */
  forget: () => void;
}

/** The part that compares a few rows of the read models with the log, and reports damaged ones. */
export function rowSamplingPart({ forget, ...sampling }: RowSampling): ProcessPart {
  const { damaged } = sampling;
  const { follow, sample } = createRowSampler({
    ...sampling,
    onReplaced() {
      forget();
      damaged.clearAll();
    },
  });
  let polls = 0;
  return {
    health: async () => damagedRowsHealth(damaged),
    upkeep: () =>
      startPolling(async () => {
        await follow();
        polls += 1;
        if (polls % POLLS_OF_STEP === 0) await sample();
      }),
  };
}
