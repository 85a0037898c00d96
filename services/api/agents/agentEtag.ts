import type { Context } from 'koa';
import type { AgentRow } from '../../../shared/readModels/tables.ts';
import { computeEtag } from '../http/responses/etag.ts';
import { AgentDetail } from './schemas.ts';

/** A release that shows an agent in another way has another name for the same one. */
const SCHEMA_ETAG = computeEtag(JSON.stringify(AgentDetail));

/**
 * Names a revision of an agent. Strong, because `If-Match` compares only strong ones: what it names
 * is the agent, however the bytes are sent. Behind the revision stands what tells answers apart that
 * show the same one in another way.
 */
export const agentEtag = ({ agent_id, revision, updated_at }: AgentRow): string =>
  `"${revision}${computeEtag(SCHEMA_ETAG, `${agent_id}.${revision}.${updated_at}`).slice(2).replace('"', '-')}`;

/** A strong tag of ours, in a list. */
const AGENT_ETAG = /(?<!W\/)"(\d{1,10})(?:-[\w-]*)?"/g;

/**
 * The revisions that `If-Match` names; undefined where any will do. A weak tag, one that is not
 * ours, and what is no tag at all name none.
 */
export function parseIfMatch(ctx: Context): number[] | undefined {
  const value = ctx.get('if-match').trim();
  if (value === '' || value === '*') return undefined;
  return [...value.matchAll(AGENT_ETAG)].map(([, revision]) => Number(revision));
}
