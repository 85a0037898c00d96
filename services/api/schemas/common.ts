import { Type } from 'typebox';
import { LIMITS } from '../../../shared/limits.ts';
import { KIB, text } from './text.ts';

export const AgentId = Type.String({
  description: 'Identifier of an agent',
  examples: ['agent_01kahz0b2re5v8k2s4n6t8w0y2'],
});
export const SessionId = Type.String({
  description: 'Identifier of a session',
  examples: ['session_01kahz1c3sf6w9m3v5q7x9z1a3'],
});

export const FinishReason = Type.String({
  description:
    'How the provider says that the answer ended: `stop`; `length` (cut off at a limit of tokens), `content_filter` (cut off by its filter); other words are the provider’s own, and it is empty where it says none',
  examples: ['stop', 'length', 'content_filter'],
});

const Pretty = {
  pretty: Type.Optional(Type.Boolean({ description: 'Pretty-prints the JSON answer' })),
};

/** The query of every operation. */
export const CommonQuery = Type.Object(Pretty, { additionalProperties: false });

const Cursor = text({
  minLength: 1,
  maxLength: 256,
  description: 'Continues after this entry; take it from the `Link` header of the page before',
});
/** No stream gets longer, and every store has an integer that holds it. */
const MAX_NUMBER = 2_147_483_647;

/** Pages by the key of the last entry. */
export const pageQuery = (limit: { default?: number; description: string }) => ({
  ...Pretty,
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: LIMITS.http.pageEntries, ...limit })),
  after: Type.Optional(Cursor),
});

/** Pages by number: a turn, or a revision. */
export const numberedPageQuery = (entries: string, after: string) => ({
  ...Pretty,
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: LIMITS.http.pageEntries,
      default: 100,
      description: `The most ${entries} to answer`,
    }),
  ),
  after: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_NUMBER, description: after })),
});

export const InputText = text({
  minLength: 1,
  maxBytes: 512 * KIB,
  description:
    'Input text for the agent to process, at most 512 KiB of UTF-8, and at most 960 KiB as JSON',
});
