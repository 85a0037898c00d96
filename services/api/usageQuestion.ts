import type { Static } from 'typebox';
import { LIMITS } from '../../shared/limits.ts';
import type { UsageQuestion } from '../../shared/queries/usage.ts';
import { USAGE_COLUMNS, type UsageColumn } from '../../shared/readModels/usageSums.ts';
import { DIMENSIONS, type UsageQuery } from './schemas/usage.ts';
import { invalidRequest } from './validation.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;
const DEFAULT_LIMIT = 100;

const badField = (field: string, message: string) =>
  invalidRequest('query', [{ path: `/${field}`, message }]);

/** Milliseconds of a date. Errors: `invalid_request` for a day that its month does not have. */
function dayAt(field: 'from' | 'to', date: string): number {
  const at = Date.parse(`${date}T00:00:00.000Z`);
  if (Number.isNaN(at) || !new Date(at).toISOString().startsWith(date))
    throw badField(field, 'must be a day of the calendar');
  return at;
}

/** Errors: `invalid_request` for a dimension that is given twice. */
function columnsOf(by: string | undefined): UsageColumn[] {
  const names = by?.split(',') ?? [];
  if (new Set(names).size < names.length) throw badField('by', 'must name each of them once');
  return USAGE_COLUMNS.filter((_column, index) => names.includes(DIMENSIONS[index]!));
}

/** Where the page after an entry begins. */
export const cursorOf = ({ values }: { values: readonly string[] }): string =>
  Buffer.from(JSON.stringify(values)).toString('base64url');

/** Errors: `invalid_request` for what is no cursor of such a list. */
function placeOf(after: string, entries: number): string[] {
  try {
    const values: unknown = JSON.parse(Buffer.from(after, 'base64url').toString());
    if (
      Array.isArray(values) &&
      values.length === entries &&
      values.every((value) => typeof value === 'string')
    )
      return values;
  } catch {
    // It is refused below, like other things that are no cursor.
  }
  throw badField('after', 'must be that of the `Link` header of the page before');
}

/** What a query asks of the usage. Errors: `invalid_request` that names the parameter. */
export function usageQuestion({
  from,
  to,
  by,
  limit = DEFAULT_LIMIT,
  after,
}: Static<typeof UsageQuery>): UsageQuestion {
  const days = (dayAt('to', to) - dayAt('from', from)) / DAY_MS + 1;
  if (days < 1) throw badField('to', 'must not be before "from"');
  if (days > LIMITS.usage.days)
    throw badField('to', `must be at most ${LIMITS.usage.days} days with "from"`);
  const columns = columnsOf(by);
  return {
    from,
    to,
    by: columns,
    limit,
    ...(after === undefined ? {} : { after: placeOf(after, columns.length) }),
  };
}
