import type { Static } from 'typebox';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { UsageQuestion } from '../../../shared/usage/queries.ts';
import { USAGE_COLUMNS, type UsageColumn } from '../../../shared/usage/tables.ts';
import { DIMENSIONS, type UsageQuery } from './schemas.ts';

const DEFAULT_LIMIT = 100;

/** One that is named twice counts once. */
function parseColumns(by: string | undefined): UsageColumn[] {
  const names = by?.split(',') ?? [];
  return USAGE_COLUMNS.filter((_column, index) => names.includes(DIMENSIONS[index]!));
}

/** Where the page after an entry begins. */
export const usageCursor = ({ values }: { values: readonly string[] }): string =>
  Buffer.from(JSON.stringify(values)).toString('base64url');

/** Errors: `position_unknown` for what is no cursor of such a list. */
function parseCursor(after: string, entries: number): string[] {
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
  const message = '"after" must be that of the `Link` header of the page before.';
  throw new TurnlogError('position_unknown', `There is no such page: ${message}`, {
    details: { after: { message, path: 'query/after' } },
  });
}

/** What a query asks of the usage. Errors: `position_unknown` for what is no cursor of its list. */
export function parseUsageQuery({
  from,
  to,
  by,
  limit = DEFAULT_LIMIT,
  after,
}: Static<typeof UsageQuery>): UsageQuestion {
  const columns = parseColumns(by);
  return {
    from,
    to,
    by: columns,
    limit,
    ...(after === undefined ? {} : { after: parseCursor(after, columns.length) }),
  };
}
