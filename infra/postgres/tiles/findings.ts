import { randomUUID } from 'node:crypto';
import type { TransparencyFinding } from '../../../shared/health/health.ts';
import type { TransparencyFindings } from '../../../shared/ports/transparencyFindings.ts';
import type { AllRows } from './reader.ts';

/** A row is as old as this where a process ended without withdrawing it, or can't reach the database. */
const CURRENT = "reported_at > clock_timestamp() - interval '15 seconds'";

const REPORT = `WITH gone AS (DELETE FROM turnlog.tlog_findings WHERE NOT ${CURRENT} AND reporter <> $1)
  INSERT INTO turnlog.tlog_findings (reporter, reported_at, finding) VALUES ($1, clock_timestamp(), $2)
  ON CONFLICT (reporter) DO UPDATE SET reported_at = excluded.reported_at, finding = excluded.finding`;

const OTHERS = `SELECT finding FROM turnlog.tlog_findings WHERE reporter <> $1 AND ${CURRENT} ORDER BY reporter`;

/** Exchanges findings through a database. */
export function transparencyFindings(all: AllRows): TransparencyFindings {
  const reporter = randomUUID();
  let isReported = false;

  async function withdraw(): Promise<void> {
    if (isReported) await all('DELETE FROM turnlog.tlog_findings WHERE reporter = $1', [reporter]);
    isReported = false;
  }

  return {
    withdraw,
    async exchange(own) {
      if (own) {
        isReported = true;
        await all(REPORT, [reporter, JSON.stringify(own)]);
      } else await withdraw();
      const rows = await all<{ finding: TransparencyFinding }>(OTHERS, [reporter]);
      return rows.map(({ finding }) => finding);
    },
  };
}
