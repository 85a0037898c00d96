import type { Static } from 'typebox';
import { issueChatToken, type IssuedChatToken } from '../../../shared/chatTokens/chatAccess.ts';
import type { RouteContext } from '../context.ts';
import { defineFeature } from '../http/feature.ts';
import { defineRoute, type RouteRequest } from '../http/route.ts';
import { CommonQuery } from '../openapi/commonSchemas.ts';
import { ChatToken, ChatTokenBody } from './schemas.ts';

type TokenRequest = RouteRequest<unknown, Static<typeof ChatTokenBody>>;

const issue = (
  api: RouteContext,
  { actor, params, body }: Pick<TokenRequest, 'actor' | 'params' | 'body'>,
): Promise<IssuedChatToken> =>
  issueChatToken(api, actor, { agent_id: params['agentId']!, ...body });

const issueChatTokenRoute = defineRoute({
  method: 'post',
  path: '/v1/agents/{agentId}/chat-tokens',
  operationId: 'issueChatToken',
  summary: 'Issues a short-lived token for the chat of an end user with an agent',
  description:
    'For your server, which passes the token to the browser of the user, so that no API key leaves it. The token can run this agent, and read and cancel turns of the sessions that the user started with it, or of the session that the request names. Everything else gets 403 `forbidden`, and other sessions 404 `session_not_found`. It ends when it expires, when the API key is revoked or expires, and when the agent is deleted. The API key must also have the scope `sessions:read`. A retry issues another token.',
  access: 'agents:run',
  query: CommonQuery,
  body: ChatTokenBody,
  data: ChatToken,
  errors: ['agent_not_found', 'agent_erased', 'session_not_found', 'key_missing'],
  idempotency: { prepare: issue, reserve: () => ({}) },
  handle: async (api, { claim, ...request }) => ({
    data: claim?.prepared ?? (await issue(api, request)),
  }),
});

export const chatTokensFeature = defineFeature({ routes: [issueChatTokenRoute] });
