import { recordAudit } from '../../../shared/audit/commands.ts';
import type { RecordedEvent } from '../../../shared/eventlog/event.ts';
import { sessionStream } from '../../../shared/eventlog/streams.ts';
import { proveSession } from '../../../shared/transparency/proof/sessionProof.ts';
import { MAKING_BYTES, pageBody } from '../http/responses/listResponse.ts';
import { presentCommitted, presentProof } from './proofPresenter.ts';
import { STREAM_ERRORS } from '../http/errors/streamErrorCodes.ts';
import { defineRoute } from '../http/route.ts';
import { SessionProof, SessionProofQuery } from './proofSchemas.ts';
import { pageFrom } from '../sessions/routes.ts';

export const proveSessionRoute = defineRoute({
  method: 'get',
  path: '/v1/sessions/{sessionId}/proof',
  operationId: 'proveSession',
  summary: 'Proves that the session is in the transparency log, without showing its texts',
  description:
    'The proof is of the session’s last event, whose hash chain is the page of events and those that `Link` leads to: together they show that nothing of the session was changed, dropped or added. An erased session is proven as well. Each page is recorded in the account’s audit before it is answered.',
  access: 'audit:read',
  query: SessionProofQuery,
  data: SessionProof,
  errors: ['session_not_found', 'proof_pending', ...STREAM_ERRORS],
  holds: MAKING_BYTES,
  handle: async (api, { actor, params, query }) => {
    const sessionId = params['sessionId']!;
    const { head, events } = await proveSession(api, actor.account_id, sessionId, pageFrom(query));
    await recordAudit(api, actor, {
      action: 'proof',
      subject: sessionStream(sessionId),
      detail: `revision ${head.revision}`,
    });
    const rows = {
      around: presentProof(sessionId, head),
      present: presentCommitted,
      cursorOf: ({ revision }: RecordedEvent) => String(revision),
    };
    return { page: (to) => pageBody(events, rows, to) };
  },
});
