import { TurnlogError } from '../lib/errors/turnlogError.ts';
import { isoTime } from '../ports/clock.ts';
import type { Counts } from './counts.ts';
import type { AppendPurpose } from './appendPurpose.ts';

/** Quotas of an account by name. A day begins at midnight UTC. */
export const QUOTA_NAMES = [
  'events_per_day',
  'bytes_per_day',
  'events',
  'bytes',
  'audits_per_day',
] as const;
export type QuotaName = (typeof QUOTA_NAMES)[number];

/** The quotas of an account; 0 for none. */
export type Quotas = Record<QuotaName, number>;

interface Used {
  today: Counts;
  total: Counts;
}

/** The count that each quota limits. */
export const USED: Readonly<Record<QuotaName, (used: Used) => number>> = {
  events_per_day: ({ today }) => today.events,
  bytes_per_day: ({ today }) => today.bytes,
  events: ({ total }) => total.events,
  bytes: ({ total }) => total.bytes,
  audits_per_day: ({ today }) => today.audits,
};

const WRITES = ['events_per_day', 'bytes_per_day', 'events', 'bytes'] as const;

/**
 * The quotas that apply to each purpose, and their extent. Reads of an account that has written too much
 * continue, and the other way round. Cancellations may take a tenth more.
 */
const APPLIES: Readonly<
  Record<Exclude<AppendPurpose, 'always'>, { quotas: readonly QuotaName[]; extent: number }>
> = {
  client: { quotas: WRITES, extent: 1 },
  cancel: { quotas: WRITES, extent: 1.1 },
  audit: { quotas: ['audits_per_day'], extent: 1 },
};

/** The first quota that an append would exceed. */
export function exceededQuota(
  quotas: Quotas,
  purpose: Exclude<AppendPurpose, 'always'>,
  used: Used,
  counts: Counts,
): QuotaName | undefined {
  const more: Used = { today: counts, total: counts };
  const { quotas: names, extent } = APPLIES[purpose];
  return names.find(
    (name) => quotas[name] > 0 && USED[name](used) + USED[name](more) > quotas[name] * extent,
  );
}

const UNITS: Readonly<Record<QuotaName, string>> = {
  events_per_day: 'events a day',
  bytes_per_day: 'bytes of events a day',
  events: 'events',
  bytes: 'bytes of events',
  audits_per_day: 'entries of the audit a day',
};

const DAY_MS = 86_400_000;

/** When the quotas of a day begin anew, in milliseconds since 1970. */
export const nextDay = (now: number): number => (Math.floor(now / DAY_MS) + 1) * DAY_MS;

/** The error for an append beyond a quota. `now` is in milliseconds since 1970. */
export function quotaError(name: QuotaName, limit: number, now: number): TurnlogError {
  const reached = `The account has reached its quota \`${name}\`: ${limit} ${UNITS[name]}.`;
  if (!name.endsWith('_per_day'))
    return new TurnlogError('quota_exceeded', `${reached} Only the operator can raise it.`);
  const resets = nextDay(now);
  return new TurnlogError('quota_exceeded', `${reached} It resets at ${isoTime(resets)}.`, {
    retriable: true,
    retryAfterSeconds: Math.ceil((resets - now) / 1_000),
  });
}
