import { recordAudit } from '../../../shared/audit/commands.ts';
import { sessionStream } from '../../../shared/eventlog/streams.ts';
import {
  proveSession,
  type HeadProof,
  type IncludedEvent,
} from '../../../shared/transparency/proof/sessionProof.ts';
import type { Static } from 'typebox';
import { PAGE_BUFFER_BYTES, renderPage, parsePageQuery } from '../http/responses/listResponse.ts';
import { STREAM_ERROR_CODES } from '../http/errors/errorResponses.ts';
import { defineRoute } from '../http/route.ts';
import { defineFeature } from '../http/feature.ts';
import { SessionProof, SessionProofQuery } from './schemas.ts';

/** A proof before its events, which are rendered as its last member. */
const presentProof = (
  session_id: string,
  { revision, event_id, leaf, proof, checkpoint }: HeadProof,
): Static<typeof SessionProof> => ({
  session_id,
  revision,
  event_id,
  leaf,
  proof,
  checkpoint,
  events: [],
});

/** An event without its texts and its position, and its leaf. */
const presentIncluded = ({
  event: { position: _position, ...event },
  leaf: { index, hashes },
}: IncludedEvent) => ({
  ...event,
  inclusion: { index, hashes: hashes.map((hash) => Buffer.from(hash).toString('base64')) },
});

const proveSessionRoute = defineRoute({
  method: 'get',
  path: '/v1/sessions/{sessionId}/proof',
  operationId: 'proveSession',
  summary: 'Proves that the session is in the transparency log, without showing its texts',
  description:
    'Proves the session’s last event, and each event of the page under the same checkpoint. The hash chain of the events on this page and the next ones (`Link`) leads to the last one, so that no event of the session can have been changed, removed or added. Where one was, the answer is `stream_damaged`, and says what was found. Erased sessions can be proven, too. Each page is recorded in the account’s audit before it is sent.',
  access: 'audit:read',
  query: SessionProofQuery,
  data: SessionProof,
  errors: ['quota_exceeded', 'session_not_found', 'proof_pending', ...STREAM_ERROR_CODES],
  bufferBytes: PAGE_BUFFER_BYTES,
  handle: async (api, { actor, params, query }) => {
    const sessionId = params['sessionId']!;
    const { head, events } = await proveSession(
      api,
      actor.account_id,
      sessionId,
      parsePageQuery(query),
    );
    await recordAudit(api, actor, {
      action: 'proof',
      subject: sessionStream(sessionId),
      detail: `revision ${head.revision}`,
    });
    const rows = {
      emptyData: presentProof(sessionId, head),
      present: presentIncluded,
      cursorOf: ({ event }: IncludedEvent) => String(event.revision),
    };
    return { page: (to) => renderPage(events, rows, to) };
  },
});

export const proofFeature = defineFeature({
  routes: [proveSessionRoute],
  errors: {
    proof_pending: {
      status: 503,
      description:
        'The transparency log does not cover the session’s last event yet; `Retry-After` says when to try again',
    },
  },
});
