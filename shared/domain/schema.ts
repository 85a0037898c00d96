import type { Static, TLiteral, TObject, TProperties, TSchema, TStringOptions } from 'typebox';
import { Type } from './jsonSchema.ts';

/** The schema of one event type: its versioned name and its data. */
export const eventSchema = <const Name extends string, Data extends TProperties>(
  name: Name,
  data: Data,
  description: string,
) => Type.Object({ type: Type.Literal(name), data: Type.Object(data) }, { description });

/** The schema of any event type. */
export type EventSchema = TObject<{ type: TLiteral<string>; data: TObject }>;

export type EventOf<Schema extends TSchema> = Static<Schema>;

/** Marks the schema of a protected text. A symbol never appears in JSON generated from a schema. */
const PROTECTED = Symbol('a protected text');

/**
 * A text written by a person or a model. In the domain it is a string. The log contains a
 * commitment and a box instead, so that the text can be erased
 * (shared/eventlog/encryption/protectedText.ts).
 */
export const ProtectedTextSchema = (options: TStringOptions = {}) =>
  Type.String({ ...options, [PROTECTED]: true });

/** True for the schema of a protected text, including an optional one. */
export const isProtectedTextSchema = (schema: object): boolean => PROTECTED in schema;

/** The description of an instant in the relay's contract, which has no `format`. */
export const INSTANT = {
  pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$',
  examples: ['2026-11-20T09:30:00.000Z'],
  description: 'UTC, milliseconds, ISO 8601',
};

/** An instant: UTC with milliseconds, ISO 8601. */
export const Instant = Type.String({ format: 'date-time', ...INSTANT });

const ERASURE_REASONS = ['request', 'retention', 'account'] as const;

/** The data of an erasure event. */
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

/** The erasure of an account together with all its streams. */
export const AccountErasure = Type.Object(erasure);
/** The erasure of any other stream. */
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
