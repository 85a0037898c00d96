import {
  createDamagedStreams,
  type DamagedStreams,
} from '../../../shared/eventlog/reading/damagedStreams.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import type { ProcessPart } from '../processParts.ts';

/** A restored log damages thousands of streams at once: no more are named in a minute. */
const MOST_A_MINUTE = 100;
const MINUTE_MS = 60_000;

/** The damaged streams of this process; the log names each once, unless there are very many. */
export function createDamageReporter(
  logger: Logger,
  now: () => number = () => performance.now(),
): DamagedStreams {
  let minute = { since: -Infinity, named: 0 };
  return createDamagedStreams((damage) => {
    if (now() - minute.since >= MINUTE_MS) minute = { since: now(), named: 0 };
    minute.named += 1;
    if (minute.named <= MOST_A_MINUTE)
      logger.warn(
        damage,
        'a stream is not whole: nothing is added to it, and everything else goes on',
      );
    else if (minute.named === MOST_A_MINUTE + 1)
      logger.warn(
        'more streams are not whole than are named here: no other is named for the rest of a minute',
      );
  }, now);
}

/** The streams that this process found not to be whole, as an operator is told of them. */
export const damagedStreamsPart = (damaged: DamagedStreams): ProcessPart => ({
  health: async () => ({ damaged_streams: damaged.list(), damaged_count: damaged.count() }),
});
