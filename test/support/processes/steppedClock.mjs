/**
 * For `--import`: sets the clock of the process and of its threads off by the milliseconds in the
 * file that STEPPED_CLOCK names. Timers and `performance.now()` go on as they do when a system's
 * clock is set.
 */
import { readFileSync } from 'node:fs';

const SystemDate = Date;
const file = process.env.STEPPED_CLOCK;
const now = () => SystemDate.now() + Number(readFileSync(file, 'utf8'));

globalThis.Date = class extends SystemDate {
  constructor(...given) {
    if (given.length === 0) super(now());
    else super(...given);
  }
  static now() {
    return now();
  }
};
