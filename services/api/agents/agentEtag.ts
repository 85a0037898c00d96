import type { Context } from 'koa';
import type { AgentRow } from '../../../shared/readModels/tables.ts';
import { computeEtag } from '../http/responses/etag.ts';
import { AgentDetail } from './schemas.ts';

/** Changes with the schema, so that releases with another presentation have other ETags. */
const SCHEMA_ETAG = computeEtag(JSON.stringify(AgentDetail));

/**
 * The ETag of a revision of an agent. It is strong, because `If-Match` compares only strong ones: it
 * identifies the agent, not the bytes of a response. A hash of the presentation follows the revision.
 */
export const agentEtag = ({ agent_id, revision, updated_at }: AgentRow): string =>
  `"${revision}${computeEtag(SCHEMA_ETAG, `${agent_id}.${revision}.${updated_at}`).slice(2).replace('"', '-')}`;

/** A strong ETag of an agent, in a list. */
const AGENT_ETAG = /(?<!W\/)"(\d{1,10})(?:-[\w-]*)?"/g;

/**
 * The revisions that `If-Match` names; undefined where any revision matches. Weak, foreign and invalid
 * ETags name no revision.
 */
export function parseIfMatch(ctx: Context): number[] | undefined {
  const value = ctx.get('if-match').trim();
  if (value === '' || value === '*') return undefined;
  return [...value.matchAll(AGENT_ETAG)].map(([, revision]) => Number(revision));
}
