import type { TSchema, TString } from 'typebox';
import { Type } from '../../../shared/domain/jsonSchema.ts';
import { RETRY_ADVICE } from '../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../shared/limits.ts';

/**
 * The schema of a success envelope. It is named after its operation, such as `RunAgentResponse200`,
 * so that every generator gives the type the same name. `beside` are members that it may have.
 */
export const envelopeSchema = (
  operationId: string,
  data: TSchema,
  status: 200 | 202,
  beside: Readonly<Record<string, TSchema>> = {},
) =>
  Type.Object(
    {
      success: Type.Literal(true),
      data,
      status: Type.Integer({ const: status, description: 'Mirrors the HTTP status' }),
      ...Object.fromEntries(
        Object.entries(beside).map(([name, schema]) => [name, Type.Optional(schema)]),
      ),
    },
    {
      title: `${operationId.charAt(0).toUpperCase()}${operationId.slice(1)}Response${status}`,
      description: `The response of \`${operationId}\` with status ${status}`,
    },
  );

/** A TypeID: a prefix, and a UUIDv7 in 26 characters of Crockford's base 32. */
const id = (
  of: 'account' | 'agent' | 'key' | 'replay' | 'session' | 'webhook',
  example: string,
  prefix = of as string,
) => ({
  pattern: `^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$`,
  'x-rule': `must be the id of ${of.startsWith('a') ? 'an' : 'a'} ${of}, such as ${example}`,
  examples: [example],
});
const ACCOUNT_ID = id('account', 'acct_01kahz4f6wj9z2q6y8t0a2c4d6', 'acct');
const KEY_ID = id('key', 'key_01kahz5g7xk0a3r7z9v1b3d5e7');
const AGENT_ID = id('agent', 'agent_01kahz0b2re5v8k2s4n6t8w0y2');
const WEBHOOK_ID = id('webhook', 'webhook_01kahz2d4tg7x0n4w6r8y0a2b4');
const REPLAY_ID = id('replay', 'replay_01kahz3e5vh8y1p5x7s9z1b3c5');
const SESSION_ID = id('session', 'session_01kahz1c3sf6w9m3v5q7x9z1a3');

export const AgentId = Type.String({ ...AGENT_ID, description: 'Identifier of an agent' });
export const SessionId = Type.String({ ...SESSION_ID, description: 'Identifier of a session' });

export const AccountId = Type.String({ ...ACCOUNT_ID, description: 'Identifier of an account' });
export const KeyId = Type.String({ ...KEY_ID, description: 'Identifier of an API key' });
export const ReplayId = Type.String({ ...REPLAY_ID, description: 'Identifier of a replay' });
export const WebhookId = Type.String({ ...WEBHOOK_ID, description: 'Identifier of a webhook' });

export const FinishReason = Type.String({
  description:
    'Why the answer ended, from the provider: `stop`; `length` (cut off at a token limit), `content_filter` (cut off by its filter); providers may send other values; empty if the provider sends none',
  examples: ['stop', 'length', 'content_filter'],
});

const Pretty = {
  pretty: Type.Optional(Type.Boolean({ description: 'Pretty-prints the JSON answer' })),
};

/** The query of every operation. */
export const CommonQuery = Type.Object(Pretty, { additionalProperties: false });

/** More than the length of any stream, and an integer of every store. */
const MAX_INT32 = 2_147_483_647;

/** Pages by the id of the last entry. */
const pageQuery = (
  { pattern, 'x-rule': rule, examples }: ReturnType<typeof id>,
  limit: { default?: number; description: string },
) => ({
  ...Pretty,
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: LIMITS.http.pageEntries, ...limit })),
  after: Type.Optional(
    Type.String({
      pattern,
      'x-rule': rule,
      examples,
      description: 'Continues after this entry; take it from the `Link` header of the page before',
    }),
  ),
});

export const agentPageQuery = (limit: { description: string }) => pageQuery(AGENT_ID, limit);
export const sessionPageQuery = (limit: { default: number; description: string }) =>
  pageQuery(SESSION_ID, limit);

export const replayPageQuery = (limit: { default: number; description: string }) =>
  pageQuery(REPLAY_ID, limit);

export const webhookPageQuery = (limit: { default: number; description: string }) =>
  pageQuery(WEBHOOK_ID, limit);

/** Pages by the name of the last entry, of a list that is complete when no `limit` is given. */
export const namedPageQuery = (entries: string) => ({
  ...Pretty,
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: LIMITS.http.pageEntries,
      description: `The most ${entries} to answer; all of them when absent`,
    }),
  ),
  after: Type.Optional(
    textSchema({
      maxLength: LIMITS.text.referenceCharacters,
      description: 'Continues after this entry; take it from the `Link` header of the page before',
    }),
  ),
});

export const accountPageQuery = (limit: { default: number; description: string }) =>
  pageQuery(ACCOUNT_ID, limit);
export const keyPageQuery = (limit: { default: number; description: string }) =>
  pageQuery(KEY_ID, limit);

/** Only sessions that this replay made. */
export const replayIdFilter = (description: string): TString =>
  Type.String({ ...REPLAY_ID, description });

/** Only what belongs to this session. */
export const sessionIdFilter = (description: string): TString =>
  Type.String({ ...SESSION_ID, description });

/** Only what belongs to this agent. */
export const agentIdFilter = (description: string): TString =>
  Type.String({ ...AGENT_ID, description });

/** Which entries of a list come first. */
export const listOrderQuery = (description: string) =>
  Type.Optional(Type.Enum(['newest', 'oldest'], { default: 'newest', description }));

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
  after: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_INT32, description: after })),
});

/**
 * A time that a client gives (shared/lib/time/parseTime.ts). Has no `format`, because a plain date is
 * accepted, too.
 */
export const timeSchema = (description: string): TString =>
  Type.String({
    'x-time': true,
    examples: ['2026-11-20T09:30:00Z', '2026-11-20T10:30:00+01:00', '2026-11-20'],
    description,
  });

interface TextLimits {
  pattern?: string;
  /** The requirement of the pattern: the rest of a sentence that begins with the field. */
  'x-rule'?: string;
  /** In characters (code points). */
  maxLength?: number;
  /** In bytes of UTF-8. */
  maxBytes?: number;
  /** The list of the running service that has the allowed values; its first one is the example. */
  offered?: 'models' | 'tools';
  description: string;
  examples?: string[];
}

/**
 * Text that every store keeps unchanged: not empty, well-formed Unicode without NUL (PostgreSQL
 * can't store U+0000, and a lone surrogate has no UTF-8). Keywords that begin with `x-` are Turnlog's;
 * services/api/openapi/jsonSchema.ts replaces them by standard ones.
 */
export const textSchema = ({ maxBytes, offered, ...limits }: TextLimits): TString =>
  Type.String({
    minLength: 1,
    ...limits,
    'x-text': true,
    ...(maxBytes !== undefined && {
      'x-max-bytes': maxBytes,
      'x-max-json-bytes': LIMITS.http.jsonTextBytes,
    }),
    ...(offered && { 'x-offered': offered }),
  });

const FailureDetail = Type.Object(
  {
    message: Type.String({ description: 'One sentence for people' }),
    path: Type.String({
      description: 'The location: a JSON pointer into the body, or `query/` and the parameter',
    }),
  },
  { title: 'FailureDetail', description: 'The problem of one field' },
);

const FailureDetails = Type.Record(Type.String(), FailureDetail, {
  title: 'FailureDetails',
  description: 'Problems by field',
});

export const Retry = Type.Enum(RETRY_ADVICE, {
  title: 'Retry',
  description:
    '`same_key`: send the request again, with the same `Idempotency-Key` if it has one; `new_key`: the failure is recorded under the key, so another attempt needs another one; `never`: the same request fails again',
});

/** The members of every failure. */
export const failureFields = {
  success: Type.Literal(false),
  error: Type.String({ description: 'One sentence for people' }),
  code: Type.String({ description: 'For machines; stable' }),
  details: Type.Optional(FailureDetails),
  status: Type.Integer({ description: 'Mirrors the HTTP status' }),
  retry: Retry,
  session_id: Type.Optional(
    Type.String({ description: 'The session of the turn that the request started' }),
  ),
  turn: Type.Optional(
    Type.Integer({ description: 'The turn that the request started; `Location` is its path' }),
  ),
  request_id: Type.String({ description: 'Identifies the request in the service’s log' }),
};

export const Failure = Type.Object(failureFields, {
  title: 'Failure',
  description: 'A failure with any code',
});
