import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';

/**
 * The `Last-Event-ID` of a request; undefined without one. `parse` returns undefined for an id that
 * is not valid, which throws `invalid_request`: the header `rule`, such as `must be …`.
 */
export function readLastEventId<Id>(
  ctx: Context,
  parse: (id: string) => Id | undefined,
  rule: string,
): Id | undefined {
  const id = ctx.get('last-event-id');
  if (id === '') return undefined;
  const parsed = parse(id);
  if (parsed !== undefined) return parsed;
  throw new TurnlogError('invalid_request', `The header Last-Event-ID ${rule}.`, {
    details: { 'Last-Event-ID': { message: rule, path: 'header/Last-Event-ID' } },
  });
}

/**
 * Counts the headers with this name in lower case. Node keeps only the first of several, where a proxy
 * may use another one.
 */
export function countHeaders({ rawHeaders }: IncomingMessage, name: string): number {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]!.length === name.length && rawHeaders[at]!.toLowerCase() === name)
      count += 1;
  return count;
}
