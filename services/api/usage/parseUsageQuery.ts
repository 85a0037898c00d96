import type { Static } from 'typebox';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { UsageQuestion } from '../../../shared/usage/queries.ts';
import { USAGE_COLUMNS, type UsageColumn } from '../../../shared/usage/tables.ts';
import { DIMENSIONS, type UsageQuery } from './schemas.ts';

const DEFAULT_LIMIT = 100;

function parseColumns(by: string | undefined): UsageColumn[] {
  const names = by?.split(',') ?? [];
  return USAGE_COLUMNS.filter((_column, index) => names.includes(DIMENSIONS[index]!));
}

/** The cursor of the page after an entry. */
export const usageCursor = ({ values }: { values: readonly string[] }): string =>
  Buffer.from(JSON.stringify(values)).toString('base64url');

/** Throws `position_unknown` for an invalid cursor, or one of a list with other columns. */
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
    // Not JSON: rejected below.
  }
  const message = '"after" must be that of the `Link` header of the page before.';
  throw new TurnlogError('position_unknown', `There is no such page: ${message}`, {
    details: { after: { message, path: 'query/after' } },
  });
}

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
