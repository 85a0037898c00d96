import type { Static } from 'typebox';
import type { SessionSearch } from '../../../shared/search/searchSessions.ts';
import type { SessionListQuery } from './descriptionSchemas.ts';

/** An instant as rows store it, where instants compare as text. */
const withMilliseconds = (instant: string): string =>
  instant.includes('.') ? instant : instant.replace('Z', '.000Z');

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
    /_(from|to)$/.test(name) ? withMilliseconds(value) : value,
  ]);
  return {
    ...(Object.fromEntries(entries) as SessionSearch),
    labels: (label ?? []).map(parseLabel),
  };
}
