import type { Context } from 'koa';
import { TurnlogError } from '../../shared/errors.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { AgentRow } from '../../shared/readModels/tables.ts';
import { etagOf } from './etag.ts';
import { AgentDetail } from './schemas/agents.ts';

/** A release that shows an agent in another way has another name for the same one. */
const SHAPE = etagOf(JSON.stringify(AgentDetail));

/**
 * Names a revision of an agent. Strong, because `If-Match` compares only strong ones: what it names
 * is the agent, however the bytes are sent. Behind the revision stands what tells answers apart that
 * show the same one in another way.
 */
export const agentTag = ({ agent_id, revision, updated_at }: AgentRow): string =>
  `"${revision}${etagOf(SHAPE, `${agent_id}.${revision}.${updated_at}`).slice(2).replace('"', '-')}`;

/** One or more entity tags, as RFC 9110 §8.8.3 writes them. */
export const IF_MATCH = '^(?:\\*|(?:W/)?"[!#-~]*"(?:[ \\t]*,[ \\t]*(?:W/)?"[!#-~]*")*)$';
const WRITTEN = new RegExp(IF_MATCH);
/** A strong tag of ours, in a list. */
const OURS = /(?<!W\/)"(\d{1,10})(?:-[\w-]*)?"/g;

/**
 * The revisions that `If-Match` names; undefined where any will do. A weak tag, or one that is not
 * ours, names none.
 * Errors: `invalid_request` for what is no list of tags.
 */
export function revisionsNamed(ctx: Context): number[] | undefined {
  const value = ctx.get('if-match').trim();
  if (value === '' || value === '*') return undefined;
  if (value.length > LIMITS.text.ifMatchCharacters || !WRITTEN.test(value)) {
    const message = `"If-Match" must be one or more ETags as they were answered, such as "3-1b2m2y8asgtpgamy7phcfg", in ${LIMITS.text.ifMatchCharacters} characters at most.`;
    throw new TurnlogError('invalid_request', `The request is not valid: ${message}`, {
      details: { 'If-Match': { message, path: 'header/If-Match' } },
    });
  }
  return [...value.matchAll(OURS)].map(([, revision]) => Number(revision));
}
