import {
  Type,
  type Static,
  type TLiteral,
  type TObject,
  type TProperties,
  type TSchema,
  type TStringOptions,
} from 'typebox';

/** The schema of one event type: its versioned name and its data. */
export const eventSchema = <const Name extends string, Data extends TProperties>(
  name: Name,
  data: Data,
  description: string,
) => Type.Object({ type: Type.Literal(name), data: Type.Object(data) }, { description });

/** The schema of any event type. */
export type EventSchema = TObject<{ type: TLiteral<string>; data: TObject }>;

export type EventOf<Schema extends TSchema> = Static<Schema>;

/** Marks the schema of a protected text. A symbol stands in no JSON that is made of a schema. */
const PROTECTED = Symbol('a protected text');

/**
 * A text that persons write or models answer. To the domain it is a string; the log holds it as a
 * commitment and a box, so that it can be erased (shared/eventlog/encryption/protectedText.ts).
 */
export const ProtectedTextSchema = (options: TStringOptions = {}) =>
  Type.String({ ...options, [PROTECTED]: true });

/** True for the schema of a protected text, an optional one too. */
export const isProtectedTextSchema = (schema: object): boolean => PROTECTED in schema;

/** What an instant is to the contract of the relay, which says no more. */
export const INSTANT = {
  pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$',
  examples: ['2026-11-20T09:30:00.000Z'],
  description: 'UTC, milliseconds, ISO 8601',
};

/** An instant: UTC, milliseconds, ISO 8601. */
export const Instant = Type.String({ format: 'date-time', ...INSTANT });

const ERASURE_REASONS = ['request', 'retention', 'account'] as const;

/** What an event says of the erasure of its stream's texts. */
const erasure = {
  note: Type.Optional(
    Type.String({
      maxLength: 256,
      description: 'Why, for people; it stays readable, so no text of a person belongs here',
    }),
  ),
  key_ids: Type.Array(Type.String(), {
    description: 'The keys that the texts of the stream were under; they are destroyed',
  }),
};

/** Of an account, which is erased with all that it owns. */
export const AccountErasure = Type.Object(erasure);
/** Of a session or an agent. */
export const Erasure = Type.Object({
  reason: Type.Enum(ERASURE_REASONS, {
    description: '`request` of a client, `retention` (the time was over), or with its `account`',
  }),
  ...erasure,
});
export type Erasure = Static<typeof Erasure>;

export const Tokens = Type.Object(
  {
    prompt: Type.Integer({ minimum: 0, description: 'Prompt tokens' }),
    completion: Type.Integer({ minimum: 0, description: 'Completion tokens' }),
    total: Type.Integer({ minimum: 0, description: 'Their total' }),
  },
  { title: 'Tokens', description: 'Token counts' },
);
export type Tokens = Static<typeof Tokens>;
