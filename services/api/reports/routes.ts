import { Type } from '../../../shared/domain/jsonSchema.ts';
import type { Context } from 'koa';
import { sessionStream } from '../../../shared/eventlog/streams.ts';
import { isoTime, recordingTime } from '../../../shared/ports/clock.ts';
import { renderSessionReport } from '../../../shared/reports/readReport.ts';
import { CONTENT_SECURITY_POLICY } from '../../../shared/reports/style.ts';
import { findOwnSession } from '../../../shared/sessions/queries.ts';
import { reportMissingLeaf } from '../../../shared/transparency/leaves/missingLeaf.ts';
import { proveEvent } from '../../../shared/transparency/proof/proveEvent.ts';
import { headOfSession, toProvenEvent } from '../../../shared/transparency/proof/sessionProof.ts';
import { sendExport } from '../exports/send.ts';
import { encode } from '../exports/serialize.ts';
import { STREAM_ERROR_CODES } from '../http/errors/errorResponses.ts';
import { defineFeature } from '../http/feature.ts';
import { defineRoute } from '../http/route.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';

const HTML = 'text/html; charset=utf-8';
/** The page may do nothing: it shows what people and models wrote. */
function setReportHeaders(ctx: Context): void {
  ctx.type = HTML;
  ctx.set('content-security-policy', `${CONTENT_SECURITY_POLICY}; frame-ancestors 'none'; sandbox`);
  ctx.set('referrer-policy', 'no-referrer');
  ctx.set('cross-origin-resource-policy', 'same-origin');
}

const reportSessionRoute = defineRoute({
  method: 'get',
  path: '/v1/sessions/{sessionId}/report',
  operationId: 'reportSession',
  summary:
    'Returns a session as one HTML page for people: what happened, who did it, what proves it',
  description:
    'The recorded events with their texts, who caused each of them and when, and the proof of the last one. The page contains no script and refers to nothing. Erased texts are marked. A page that fails is cut off: it is complete where it ends with its proof. Each report is recorded in the account’s audit before it is sent.',
  access: 'sessions:read',
  query: CommonQuery,
  data: Type.String({ description: 'An HTML document' }),
  media: HTML,
  errors: ['quota_exceeded', 'session_not_found', 'proof_pending', ...STREAM_ERROR_CODES],
  handle: async (api, { actor, params }, ctx) => {
    const session_id = params['sessionId']!;
    const { account_id } = actor;
    await sendExport({ api, actor, ctx, setHeaders: setReportHeaders }, async (signal) => {
      await findOwnSession(api, account_id, session_id);
      const head = await headOfSession(api.store, session_id);
      const proof = await proveEvent(api.tiles, toProvenEvent(head));
      if (!proof) throw await reportMissingLeaf(api, head);
      const made_at = isoTime(recordingTime(api.clock));
      const report = { session_id, made_at, proof, last: head.revision };
      const detail = `report, revisions 0 to ${head.revision}`;
      return {
        audited: { action: 'read', subject: sessionStream(session_id), detail },
        chunks: encode(renderSessionReport(api, report, signal), account_id),
      };
    });
    return undefined;
  },
});

export const reportsFeature = defineFeature({ routes: [reportSessionRoute] });
