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

let last = { milliseconds: NaN, text: '' };

/** The format of all instants: ISO 8601 in UTC with milliseconds. */
export function isoTime(milliseconds: number): string {
  // Often called several times for the same millisecond.
  if (milliseconds !== last.milliseconds)
    last = { milliseconds, text: new Date(milliseconds).toISOString() };
  return last.text;
}
