import { storeUnavailableError } from '../lib/errors/turnlogError.ts';

/** The time, passed in wherever results must not depend on the machine's clock. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export interface Ids {
  /** A TypeID: `prefix_` and a UUIDv7 in base 32, by default a new one; sorts by creation time. */
  typeId(
    prefix: 'acct' | 'agent' | 'session' | 'replay' | 'webhook' | 'key',
    uuid?: string,
  ): string;
  /** A UUIDv7 in standard form. */
  uuid(): string;
}

/** The end of the year 9999: the text of a later time is longer, and fits no event. */
const LAST_TIME_MS = Date.UTC(10_000, 0, 1) - 1;

/** True for a time from 1970 to 9999, which events can record. */
export const isTime = (milliseconds: number): boolean =>
  milliseconds >= 0 && milliseconds <= LAST_TIME_MS;

const CLOCK_PROBLEM =
  'The clock of this machine is not between the years 1970 and 9999, and nothing can be recorded. Set it right.';

/** A sentence on why the clock can't be used; undefined if it can. */
export const clockProblem = (clock: Clock): string | undefined =>
  isTime(clock.now()) ? undefined : CLOCK_PROBLEM;

/** The time for an event. Throws a retriable `store_unavailable` while the clock can't be used. */
export function recordingTime(clock: Clock): number {
  const now = clock.now();
  if (isTime(now)) return now;
  throw storeUnavailableError(CLOCK_PROBLEM);
}

let last = { milliseconds: NaN, text: '' };

/** The format of all instants: ISO 8601 in UTC with milliseconds. */
export function isoTime(milliseconds: number): string {
  // Often called several times for the same millisecond.
  if (milliseconds !== last.milliseconds)
    last = { milliseconds, text: new Date(milliseconds).toISOString() };
  return last.text;
}
