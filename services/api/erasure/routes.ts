import { recordAudit } from '../../../shared/audit/commands.ts';
import { findOwnSubject } from '../../../shared/erasure/ownedStreams.ts';
import { eraseAgent, eraseSession, requireOwnStream } from '../../../shared/erasure/commands.ts';
import type { ErasedStream } from '../../../shared/erasure/eraseStream.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { errorSummary } from '../../../shared/lib/errors/errorSummary.ts';
import { findReceipt, readReceipt } from '../../../shared/transparency/receipts/readReceipt.ts';
import type { ErasureReceipt } from '../../../shared/transparency/receipts/receipt.ts';
import type { RouteContext } from '../context.ts';
import { defineFeature } from '../http/feature.ts';
import { defineRoute } from '../http/route.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';
import {
  ErasedAgent,
  ErasedSession,
  ErasureQuery,
  ErasureReceipt as ErasureReceiptSchema,
  SubjectId,
} from './schemas.ts';

/** Undefined where the transparency log is not available: the erasure itself is complete. */
const findReceiptOf = (api: RouteContext, { stream }: ErasedStream) =>
  findReceipt(api, stream).catch((error: unknown) => {
    api.logger.warn(errorSummary(error), 'an erasure was confirmed without its proof');
    return undefined;
  });

/** `receipt` is undefined until the transparency log covers the erasure. */
const presentErasure = (
  { erased_at, event }: ErasedStream,
  receipt: ErasureReceipt | undefined,
) => ({
  erased_at,
  event,
  receipt: receipt?.proof ?? null,
  erasure_receipt: receipt ?? null,
});

const ERASURE_ERROR_CODES = ['erasure_refused', 'stream_damaged', 'release_too_old'] as const;

const eraseSessionRoute = defineRoute({
  method: 'delete',
  path: '/v1/sessions/{sessionId}',
  operationId: 'eraseSession',
  summary: 'Permanently erases the texts of a session',
  description:
    'Destroys the key of its texts. Later requests for the session get 410 `session_erased`, as does a run in progress. Repeating the request gets the same response. After a 503 the erasure may have been recorded; it is then completed in the background.',
  access: 'sessions:erase',
  query: ErasureQuery,
  data: ErasedSession,
  returnsProofLink: true,
  errors: ['session_not_found', ...ERASURE_ERROR_CODES],
  handle: async (api, { actor, params, query }, ctx) => {
    const session_id = params['sessionId']!;
    const grounds = { reason: 'request', note: query.note } as const;
    const erased = await eraseSession(api, actor, session_id, grounds);
    ctx.set('link', `</v1/sessions/${session_id}/proof>; rel="describedby"`);
    return { data: { session_id, ...presentErasure(erased, await findReceiptOf(api, erased)) } };
  },
});

const eraseAgentRoute = defineRoute({
  method: 'post',
  path: '/v1/agents/{agentId}/erase',
  operationId: 'eraseAgent',
  summary: 'Permanently erases the name and instruction of an agent',
  description:
    'The agent can no longer be run, and is no longer listed; its runs end with 410 `agent_erased`. Its sessions keep their texts. Repeating the request gets the same response.',
  access: 'agents:erase',
  query: ErasureQuery,
  data: ErasedAgent,
  errors: ['agent_not_found', ...ERASURE_ERROR_CODES],
  idempotency: {
    reserve: async (api, { actor, params }) => {
      await requireOwnStream('agent', api, actor, params['agentId']!);
      return {};
    },
  },
  handle: async (api, { actor, params, query, claim }) => {
    const agent_id = params['agentId']!;
    const grounds = { reason: 'request', note: query.note } as const;
    const erased = await eraseAgent(api, actor, agent_id, grounds);
    if (claim?.isFirstAttempt === false && erased.again) api.onIdempotentReplay?.();
    return { data: { agent_id, ...presentErasure(erased, await findReceiptOf(api, erased)) } };
  },
});

const notErased = (): TurnlogError =>
  new TurnlogError('erasure_not_found', 'Nothing with this id was erased.');

const getErasureRoute = defineRoute({
  method: 'get',
  path: '/v1/erasures/{subjectId}',
  operationId: 'getErasure',
  summary: 'Returns the receipt of an erasure',
  description:
    'For an erased session, agent, replay or webhook. The receipt names what was erased, and proves that the erasure is in the transparency log; `audit verify-receipt` verifies it offline. Each receipt is recorded in the account’s audit before it is sent.',
  access: 'audit:read',
  query: CommonQuery,
  data: ErasureReceiptSchema,
  errors: ['quota_exceeded', 'erasure_not_found', 'proof_pending', 'stream_damaged'],
  handle: async (api, { actor, params }) => {
    const stream = await findOwnSubject(api, actor.account_id, params['subjectId']!);
    const receipt = stream && (await readReceipt(api, stream));
    if (!receipt) throw notErased();
    await recordAudit(api, actor, { action: 'proof', subject: stream, detail: 'receipt' });
    return { data: receipt };
  },
});

export const erasureFeature = defineFeature({
  routes: [eraseSessionRoute, eraseAgentRoute, getErasureRoute],
  tags: { erasures: 'Receipts of erasures' },
  pathParameters: { subjectId: SubjectId },
  errors: {
    erasure_not_found: {
      status: 404,
      description: 'The account has nothing with this id, or it is not erased',
    },
    erasure_refused: {
      status: 409,
      description:
        'A legal hold of the account, or the least time that it keeps sessions, forbids the erasure',
    },
  },
});
