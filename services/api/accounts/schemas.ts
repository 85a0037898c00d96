import { Type } from '../../../shared/domain/jsonSchema.ts';
import { SCOPES } from '../../../shared/accounts/events.ts';
import { Instant } from '../../../shared/domain/schema.ts';
import { Name } from '../../../shared/lib/validation/nameSchema.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { AccountId, accountPageQuery, KeyId, keyPageQuery } from '../openapi/commonSchemas.ts';

const KEY_NAME = { ...Name, description: 'For people', examples: ['deploy'] };
const Lifetime = Type.Optional(
  Type.Integer({
    minimum: 1,
    maximum: LIMITS.keys.lifetimeSeconds,
    description: 'For how many seconds the new key is valid, at most as long as the key that asks',
    examples: [2_592_000],
  }),
);

export const IssueKeyBody = Type.Object(
  {
    name: KEY_NAME,
    scopes: Type.Array(Type.Enum(SCOPES), {
      minItems: 1,
      maxItems: SCOPES.length,
      uniqueItems: true,
      description: 'What the key may do: only scopes of the key that asks',
      examples: [['agents:read', 'agents:run']],
    }),
    expires_in_seconds: Lifetime,
  },
  {
    additionalProperties: false,
    title: 'IssueKeyRequest',
    description: 'The name, the scopes and the lifetime of a key; without a lifetime, no end',
  },
);

export const RotateKeyBody = Type.Object(
  {
    overlap_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: LIMITS.keys.overlapSeconds,
        default: LIMITS.keys.defaultOverlapSeconds,
        description: 'For how many seconds the old key stays valid; 0 revokes it at once',
        examples: [86_400],
      }),
    ),
    expires_in_seconds: Lifetime,
  },
  {
    additionalProperties: false,
    title: 'RotateKeyRequest',
    description:
      'The overlap of both keys, and the lifetime of the new one; without it, the end of the old one',
  },
);

export const OpenAccountBody = Type.Object(
  { name: { ...Name, description: 'For people', examples: ['Example Inc.'] } },
  { additionalProperties: false, title: 'OpenAccountRequest', description: 'The account' },
);

const issuer = 'The id of the key that did it, or `operator`';
const key = {
  key_id: KeyId,
  name: Type.String(),
  scopes: Type.Array(Type.String(), { description: 'What the key may do' }),
  issued_at: Instant,
  issued_by: Type.String({ description: issuer }),
  expires_at: Type.Union([Instant, Type.Null()], { description: 'null: never' }),
};

export const ApiKey = Type.Object(
  {
    ...key,
    state: Type.Enum(['active', 'expired', 'revoked']),
    replaced_by: Type.Union([KeyId, Type.Null()], {
      description: 'The key that replaced it; it expires at `expires_at`',
    }),
    revoked_at: Type.Union([Instant, Type.Null()], { description: 'When the key was revoked' }),
    revoked_by: Type.Union([Type.String(), Type.Null()], { description: issuer }),
  },
  { title: 'ApiKey', description: 'An API key, without the key itself' },
);
export const ApiKeyList = Type.Array(ApiKey);

const issued = {
  ...key,
  api_key: Type.Union([Type.String(), Type.Null()], {
    description:
      'The key itself, shown only in the first answer and stored nowhere; null in the answer to a repeated request',
  }),
};

export const IssuedKey = Type.Object(issued, {
  title: 'IssuedApiKey',
  description: 'An API key that was issued',
});

export const RotatedKey = Type.Object(
  {
    ...issued,
    replaces: Type.Object(
      { key_id: KeyId, expires_at: Instant },
      { title: 'ReplacedApiKey', description: 'The old key, and until when it is valid' },
    ),
  },
  { title: 'RotatedApiKey', description: 'An API key that was issued in place of another one' },
);

export const RevokedKey = Type.Object(
  { key_id: KeyId },
  { title: 'RevokedApiKey', description: 'An API key that is revoked' },
);

const account = { account_id: AccountId, name: Type.String(), opened_at: Instant };

export const Account = Type.Object(account, { title: 'Account', description: 'An account' });
export const AccountList = Type.Array(Account);
export const OpenedAccount = Type.Object(
  { ...account, key: IssuedKey },
  { title: 'OpenedAccount', description: 'An account that was opened, and its first API key' },
);

const PAGE = { default: 100, description: 'The most entries to answer' };

export const KeyListQuery = Type.Object(
  {
    ...keyPageQuery(PAGE),
    state: Type.Optional(Type.Enum(['active'], { description: 'Only keys that are valid now' })),
  },
  { additionalProperties: false },
);
export const AccountListQuery = Type.Object(accountPageQuery(PAGE), {
  additionalProperties: false,
});
