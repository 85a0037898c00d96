import type { Static } from 'typebox';
import { Type } from '../../../shared/domain/jsonSchema.ts';
import { issueChatToken, type IssuedChatToken } from '../../../shared/chatTokens/chatAccess.ts';
import { Instant } from '../../../shared/domain/schema.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { RouteContext } from '../context.ts';
import { defineFeature } from '../http/feature.ts';
import { defineRoute, type RouteRequest } from '../http/route.ts';
import { CommonQuery, AgentId, textSchema } from '../openapi/commonSchemas.ts';

const ChatTokenBody = Type.Object(
  {
    user: textSchema({
      maxLength: LIMITS.text.referenceCharacters,
      description:
        'Your id of the end user, whose sessions the token can start, continue and read. Take it from your own session of the user, never from the request of a browser. Turnlog stores only an HMAC of it',
      examples: ['customer-4711'],
    }),
    session_id: Type.Optional(
      textSchema({
        maxLength: LIMITS.text.referenceCharacters,
        description:
          'The only session that the token can continue and read, also one that the user did not start',
      }),
    ),
    expires_in_seconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: LIMITS.chatTokens.lifetimeSeconds,
        default: LIMITS.chatTokens.defaultLifetimeSeconds,
        description: 'For how many seconds the token is valid, at most as long as the API key',
        examples: [900],
      }),
    ),
  },
  {
    additionalProperties: false,
    title: 'ChatTokenRequest',
    description: 'Whose sessions a chat token is for, and for how long',
  },
);

const ChatToken = Type.Object(
  {
    token: Type.String({ description: 'Sent like an API key, as `Authorization: Bearer`' }),
    expires_at: Instant,
    agent_id: AgentId,
    component: Type.String({ description: 'The UI component that the agent names' }),
  },
  { title: 'ChatToken', description: 'A token for the chat of one end user with one agent' },
);

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
