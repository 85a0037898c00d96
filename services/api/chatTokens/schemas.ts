import { Type } from '../../../shared/domain/jsonSchema.ts';
import { Instant } from '../../../shared/domain/schema.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { AgentId, textSchema } from '../openapi/commonSchemas.ts';

export const ChatTokenBody = Type.Object(
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

export const ChatToken = Type.Object(
  {
    token: Type.String({ description: 'Sent like an API key, as `Authorization: Bearer`' }),
    expires_at: Instant,
    agent_id: AgentId,
    component: Type.String({ description: 'The UI component that the agent names' }),
  },
  { title: 'ChatToken', description: 'A token for the chat of one end user with one agent' },
);
