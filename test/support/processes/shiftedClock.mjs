/**
 * Loaded before a process begins: its clock is ahead by TEST_CLOCK_AHEAD_MS milliseconds. Pauses of a
 * minute take TEST_MINUTE_MS, if that is set.
 */
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';

const MINUTE_MS = 60_000;
const minuteMs = Number(process.env['TEST_MINUTE_MS'] ?? MINUTE_MS);
const { setTimeout: sleep } = timers;
timers.setTimeout = (ms, ...options) => sleep(ms === MINUTE_MS ? minuteMs : ms, ...options);
syncBuiltinESMExports();

const ahead = Number(process.env['TEST_CLOCK_AHEAD_MS']);
const Right = Date;

globalThis.Date = class extends Right {
  constructor(...given) {
    super(...(given.length === 0 ? [Right.now() + ahead] : given));
  }

  static now() {
    return Right.now() + ahead;
  }
};
