import { createDamagedStreams, type DamagedStreams } from '../shared/eventlog/damagedStreams.ts';
import type { Logger } from '../shared/logger.ts';

/** The damaged streams of this process; the log names each once, when it is found. */
export const openDamagedStreams = (logger: Logger): DamagedStreams =>
  createDamagedStreams((damage) =>
    logger.warn(damage, 'a stream is not whole: nothing is added to it, and everything else goes on'),
  );
