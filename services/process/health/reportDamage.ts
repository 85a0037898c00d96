import {
  createDamagedStreams,
  type DamagedStreams,
} from '../../../shared/eventlog/reading/damagedStreams.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import type { ProcessPart } from '../processParts.ts';

/** A restored log can damage thousands of streams at once; no more than these are logged a minute. */
const MAX_PER_MINUTE = 100;
const MINUTE_MS = 60_000;

/** Records the damaged streams of this process, and logs each once, up to a limit per minute. */
export function createDamageReporter(
  logger: Logger,
  now: () => number = () => performance.now(),
): DamagedStreams {
  let minute = { since: -Infinity, named: 0 };
  return createDamagedStreams((damage) => {
    if (now() - minute.since >= MINUTE_MS) minute = { since: now(), named: 0 };
    minute.named += 1;
    if (minute.named <= MAX_PER_MINUTE)
      logger.warn(
        damage,
        'a stream is damaged: nothing is appended to it; other streams are not affected',
      );
    else if (minute.named === MAX_PER_MINUTE + 1)
      logger.warn('too many damaged streams: no others are logged for the rest of this minute');
  }, now);
}

/** The damaged streams that this process found, as a part of its health. */
export const damagedStreamsPart = (damaged: DamagedStreams): ProcessPart => ({
  health: async () => ({ damaged_streams: damaged.list(), damaged_count: damaged.count() }),
});
