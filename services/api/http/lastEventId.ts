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
