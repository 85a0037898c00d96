import type { Static } from 'typebox';
import { parseTime } from '../../../shared/lib/time/parseTime.ts';
import { isoTime } from '../../../shared/ports/clock.ts';
import type { SessionSearch } from '../../../shared/search/searchSessions.ts';
import type { SessionListQuery } from './descriptionSchemas.ts';

function parseLabel(text: string): readonly [string, string] {
  const colon = text.indexOf(':');
  return [text.slice(0, colon), text.slice(colon + 1)];
}

/** The filter of a query, without undefined members. */
export function parseSessionFilter({
  label,
  limit: _limit,
  after: _after,
  pretty: _pretty,
  ...query
}: Static<typeof SessionListQuery>): SessionSearch {
  const entries = Object.entries(query).map(([name, value]) => [
    name,
    // Rows store instants in this form, in which they compare as text.
    /_(from|to)$/.test(name) ? isoTime(parseTime(value)!) : value,
  ]);
  return {
    ...(Object.fromEntries(entries) as SessionSearch),
    labels: (label ?? []).map(parseLabel),
  };
}
