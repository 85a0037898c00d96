import {
  createDamagedStreams,
  type DamagedStreams,
} from '../../../shared/eventlog/reading/damagedStreams.ts';
import {
  createDamagedRows,
  REBUILD_ADVICE,
  type DamagedRow,
  type DamagedRows,
} from '../../../shared/readModels/integrity/damagedRows.ts';
import type { Health } from '../../../shared/health/health.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import type { ProcessPart } from '../processParts.ts';

/** Thousands can be damaged at once; no more than these are logged a minute. */
const MAX_PER_MINUTE = 100;
const MINUTE_MS = 60_000;

/** Logs damage, up to a limit per minute. */
function createLimitedLog(log: (damage: object) => void, logLimit: () => void, now: () => number) {
  let minute = { since: -Infinity, named: 0 };
  return (damage: object): void => {
    if (now() - minute.since >= MINUTE_MS) minute = { since: now(), named: 0 };
    minute.named += 1;
    if (minute.named <= MAX_PER_MINUTE) log(damage);
    else if (minute.named === MAX_PER_MINUTE + 1) logLimit();
  };
}

/** Records the damaged streams of this process, and logs each once, up to a limit per minute. */
export function createDamageReporter(
  logger: Logger,
  now: () => number = () => performance.now(),
): DamagedStreams {
  const log = createLimitedLog(
    (damage) =>
      logger.warn(
        damage,
        'a stream is damaged: nothing is appended to it; other streams are not affected',
      ),
    () => logger.warn('too many damaged streams: no others are logged for the rest of this minute'),
    now,
  );
  return createDamagedStreams(log, now);
}

/** Records the damaged rows that this process found, and logs each once, likewise. */
export const createDamagedRowReporter = (
  logger: Logger,
  now: () => number = () => performance.now(),
): DamagedRows =>
  createDamagedRows(
    createLimitedLog(
      (row) =>
        logger.error(
          row,
          `a row of the read models does not say what the log says, and is not used. ${REBUILD_ADVICE}`,
        ),
      () => logger.error('too many damaged rows: no others are logged for the rest of this minute'),
      now,
    ),
  );

/** The damaged streams that this process found, as a part of its health. */
export const damagedStreamsPart = (damaged: DamagedStreams): ProcessPart => ({
  health: async () => ({ damaged_streams: damaged.list(), damaged_count: damaged.count() }),
});

const damagedRowsReason = (rows: readonly DamagedRow[]): string =>
  `Rows of the read models do not say what the log says, in ${[...new Set(rows.map(({ table }) => table))].join(', ')}. ${REBUILD_ADVICE}`;

/** The damaged rows that this process found, for its health. */
export function damagedRowsHealth(damaged: DamagedRows): Pick<Health, 'damaged_rows'> {
  const rows = damaged.list();
  if (rows.length === 0) return {};
  return { damaged_rows: { count: damaged.count(), rows, reason: damagedRowsReason(rows) } };
}
