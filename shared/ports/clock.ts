/** Time and identifiers, passed in wherever the result must not depend on the machine's own. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export interface Ids {
  /** A TypeID: `prefix_` and a UUIDv7 in base 32, a new one by default; sorts by time of creation. */
  typeId(
    prefix: 'acct' | 'agent' | 'session' | 'replay' | 'webhook' | 'key',
    uuid?: string,
  ): string;
  /** A UUIDv7 in its usual form. */
  uuid(): string;
}

let last = { milliseconds: NaN, text: '' };

/** An instant as the service writes it everywhere: UTC, milliseconds, ISO 8601. */
export function isoTime(milliseconds: number): string {
  // Many events are recorded in one millisecond.
  if (milliseconds !== last.milliseconds)
    last = { milliseconds, text: new Date(milliseconds).toISOString() };
  return last.text;
}
