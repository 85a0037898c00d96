import { LIMITS } from '../../../shared/limits.ts';
import type { WitnessesHealth } from '../../../shared/health/health.ts';
import type { WitnessesReport } from './witnessed.ts';

/** Keeps what was reported of witnesses last, in this thread or another. */
export function createWitnessesHealth({ shortMs } = LIMITS.witness as { shortMs: number }) {
  let latest: WitnessesReport | undefined;
  let shortSince: number | undefined;

  function sentence({ wanted, reached, missing }: WitnessesReport): string | undefined {
    const forMs = shortSince === undefined ? -1 : performance.now() - shortSince;
    if (forMs < shortMs) return undefined;
    const why = missing.map(({ name, trouble = 'has not answered yet' }) => `${name} ${trouble}`);
    return `Only ${reached} of ${wanted} wanted witnesses have cosigned the newest checkpoint, for ${Math.ceil(forMs / 1_000)} s: ${why.join('; ')}.`;
  }

  return {
    onReport(report: WitnessesReport): void {
      latest = report;
      shortSince = report.isShort ? (shortSince ?? performance.now()) : undefined;
    },
    /** Undefined before anything was reported. */
    health(): WitnessesHealth | undefined {
      if (!latest) return undefined;
      const { wanted, reached, missing } = latest;
      const reason = sentence(latest);
      const names = missing.map(({ name }) => name);
      return { wanted, reached, missing: names, ...(reason !== undefined && { reason }) };
    },
  };
}
