/**
 * Judges whether the time is reliable enough for erasures. If a clock is years ahead, every session
 * appears to be past its maximum retention. Times are milliseconds since the epoch, durations are
 * milliseconds.
 */
import { isoTime } from '../../ports/clock.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The largest difference between correct clocks. */
export const CLOCK_TOLERANCE_MS = 5 * MINUTE_MS;
/** A longer silence in the log is indistinguishable from a clock that is ahead. */
export const SILENCE_MS = 30 * DAY_MS;
/** Uptime by the monotonic clock after which a process trusts the clock despite such a silence. */
export const TRUSTED_AFTER_MS = 24 * HOUR_MS;

export interface Clocks {
  /** The clock that decides: that of the database, if there is one. */
  now: () => number | Promise<number>;
  /** The clock of this process, if another clock decides. */
  own?: () => number;
  monotonic: () => number;
  /** When the newest event of the log was recorded; undefined if unknown. */
  newest: () => Promise<number | undefined>;
}

/** The time, or a sentence on why it is not trusted. */
export type JudgedTime = { now: number; problem?: undefined } | { problem: string };

const days = (ms: number): number => Math.floor(ms / DAY_MS);

/**
 * Checks the clock on each call against the time elapsed since the first call, the clock of this
 * process, and the newest event of the log.
 */
export function createClockJudge(clocks: Clocks): () => Promise<JudgedTime> {
  const { monotonic } = clocks;
  const up = monotonic();
  let first: { now: number; at: number; newest: number | undefined } | undefined;

  return async () => {
    const newest = await clocks.newest();
    const now = await clocks.now();
    const at = monotonic();
    if (!Number.isFinite(now)) return { problem: 'The clock says no time.' };
    first ??= { now, at, newest };
    const moved = now - first.now - (at - first.at);
    if (Math.abs(moved) > CLOCK_TOLERANCE_MS)
      return {
        problem: `The clock has moved ${moved > 0 ? 'ahead' : 'back'} by ${Math.round(Math.abs(moved) / 1000)} s while this process was up: set it right, or restart the service if it is right now.`,
      };
    const own = clocks.own?.() ?? now;
    if (Math.abs(now - own) > CLOCK_TOLERANCE_MS)
      return {
        problem: `The clock of the database says ${isoTime(now)}, the one of this process ${isoTime(own)}.`,
      };
    if (newest !== undefined && newest > now + CLOCK_TOLERANCE_MS)
      return {
        problem: `The clock says ${isoTime(now)}, and the newest event was recorded at ${isoTime(newest)}.`,
      };
    const silent = first.newest === undefined ? Infinity : first.now - first.newest;
    if (silent > SILENCE_MS && at - up < TRUSTED_AFTER_MS)
      return {
        problem: `${silent === Infinity ? 'When the newest event was recorded is not known' : `The newest event was ${days(silent)} days old when this process began to look`}, and so it would be if the clock were ahead. If ${isoTime(now)} is right, do nothing: it is believed once the process has been up for ${TRUSTED_AFTER_MS / HOUR_MS} h.`,
      };
    return { now };
  };
}
