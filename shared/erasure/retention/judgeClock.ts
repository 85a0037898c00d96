/**
 * Judges the time for erasures. If a clock is years ahead, every session appears to be past its
 * retention. No clock of this machine can show that it is right after a restart, so erasures use the
 * proven time: it passes as the monotonic clock does while a process is up, it is recorded in the
 * log, and only evidence from elsewhere or an operator sets it ahead. It is never later than the
 * true time. Times are milliseconds since the epoch, durations are milliseconds.
 */
import { isoTime, isTime } from '../../ports/clock.ts';
import type { KeptTime } from './retentionStreams.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The largest difference between correct clocks. */
export const CLOCK_TOLERANCE_MS = 5 * MINUTE_MS;
/** When the proven time is further behind the clock, an operator should confirm the clock. */
export const LATE_MS = DAY_MS;
/** How much the proven time passes until it is recorded again. */
export const KEEP_MS = 50 * MINUTE_MS;

export interface Clocks {
  /** The clock that decides: that of the database, if there is one. */
  now: () => number | Promise<number>;
  /** The clock of this process, if another clock decides. */
  own?: () => number;
  /** True if the clock that decides is on another machine: then both can't be wrong alike. */
  isIndependent?: boolean;
  monotonic: () => number;
  /** When the newest event of the log was recorded; undefined if unknown. */
  newest: () => Promise<number | 'empty' | undefined>;
  /** The proven time that is recorded in the log; undefined before the first time. */
  kept: () => Promise<KeptTime | undefined>;
  /** A time that has certainly passed by the clocks of others, such as witnesses. */
  evidence?: () => Promise<number | undefined>;
}

/**
 * The time for erasures, or a sentence on why there is none. `late` says that it is behind the
 * clock, and what to do.
 */
export type JudgedTime =
  { now: number; problem?: undefined; late?: string } | { problem: string; late?: undefined };

/** The proven time, and how often an operator had confirmed the clock when it was recorded. */
interface ProvenTime {
  time: number;
  confirmations: number;
  /** When it was last recorded; undefined before the first time. */
  kept: number | undefined;
}

export interface ClockJudge {
  judge: () => Promise<JudgedTime>;
  /** The proven time; undefined if unknown. */
  provenTime: () => Promise<ProvenTime | undefined>;
}

const days = (ms: number): string => {
  const count = Math.floor(ms / DAY_MS);
  return count === 1 ? '1 day' : `${count} days`;
};

/** The command by which an operator confirms the clock of a service. */
export const CONFIRM_CLOCK =
  'npm run cli -- retention confirm clock --today <date> --reason <text>';

const confirmAdvice = (now: number): string =>
  `If ${isoTime(now)} is right, confirm it: ${CONFIRM_CLOCK}.`;

/**
 * Creates the judge of a process. The first call should come before the process records events: a
 * log without a recorded proven time is believed up to its newest event.
 */
export function createClockJudge(clocks: Clocks): ClockJudge {
  const { monotonic } = clocks;
  let first: { now: number; at: number; newest: number | 'empty' | undefined } | undefined;
  /** The proven time at a moment of the monotonic clock. */
  let proven: { time: number; at: number; confirmations: number; isKept: boolean } | undefined;

  async function look(): Promise<{ now: number; at: number }> {
    const newest = first ? first.newest : await clocks.newest();
    const now = await clocks.now();
    const at = monotonic();
    if (isTime(now)) first ??= { now, at, newest };
    return { now, at };
  }

  /** Advances the proven time. `others` is a time that has passed by independent clocks. */
  async function advance(at: number, others = -Infinity): Promise<ProvenTime | undefined> {
    const keptTime = await clocks.kept();
    const passed = proven && proven.time + Math.max(0, at - proven.at);
    const isComparable =
      proven !== undefined &&
      proven.isKept === (keptTime !== undefined) &&
      proven.confirmations === (keptTime?.confirmations ?? 0);
    const own = isComparable ? passed! : -Infinity;
    const earliest = keptTime ? Math.max(keptTime.time, own) : (passed ?? believedAtFirst(at));
    const time = Math.max(earliest, others);
    if (!isTime(time)) return undefined;
    const confirmations = keptTime?.confirmations ?? 0;
    proven = { time, at, confirmations, isKept: keptTime !== undefined };
    return { time, confirmations, kept: keptTime?.time };
  }

  /** The time by the log as it was before this process: the newest event can't be in the future. */
  function believedAtFirst(at: number): number {
    if (first?.newest === undefined) return -Infinity;
    const newest = first.newest === 'empty' ? first.now : first.newest;
    return isTime(newest) ? Math.min(newest, first.now) + (at - first.at) : -Infinity;
  }

  async function evidence(): Promise<number> {
    const time = await clocks.evidence?.().catch(() => undefined);
    return time !== undefined && isTime(time) ? time : -Infinity;
  }

  async function judge(): Promise<JudgedTime> {
    const { now, at } = await look();
    if (!first || !isTime(now)) return { problem: 'The clock says no time.' };
    const moved = now - first.now - (at - first.at);
    const own = clocks.own?.() ?? now;
    const hasMoved = Math.abs(moved) > CLOCK_TOLERANCE_MS;
    const differs = !(Math.abs(now - own) <= CLOCK_TOLERANCE_MS);
    const independent = clocks.isIndependent && !hasMoved && !differs ? now : -Infinity;
    const advanced = await advance(at, Math.max(independent, await evidence()));
    if (hasMoved)
      return {
        problem: `The clock has moved ${moved > 0 ? 'ahead' : 'back'} by ${Math.round(Math.abs(moved) / 1000)} s while this process was up: set it right, or restart the service if it is right now.`,
      };
    if (differs)
      return {
        problem: `The clock of the database says ${isoTime(now)}, the one of this process ${isTime(own) ? isoTime(own) : 'no time'}.`,
      };
    if (!advanced)
      return {
        problem: `When the newest event was recorded is not known, and so the clock may be wrong. ${confirmAdvice(now)}`,
      };
    const late = now - advanced.time;
    if (late < -CLOCK_TOLERANCE_MS)
      return {
        problem: `The clock says ${isoTime(now)}, and it is at least ${isoTime(advanced.time)}. Set the clock right. ${confirmAdvice(now)}`,
      };
    return {
      now: Math.min(now, advanced.time),
      ...(late > LATE_MS && {
        late: `Retention counts only the time that is proven, ${isoTime(advanced.time)}: the clock is ${days(late)} ahead of it, because it may be wrong, or because the service was stopped. ${confirmAdvice(now)}`,
      }),
    };
  }

  return {
    judge,
    async provenTime() {
      const { at } = await look();
      return advance(at);
    },
  };
}
