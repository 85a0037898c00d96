import { Type } from '../domain/jsonSchema.ts';
import {
  AccountErasure,
  eventSchema,
  Instant,
  ProtectedTextSchema,
  type EventOf,
} from '../domain/schema.ts';

/**
 * Permissions of an API key that concern its account; the scopes of a key unless others are named.
 */
export const ACCOUNT_SCOPES = [
  'agents:read',
  'agents:write',
  'agents:run',
  'agents:erase',
  'sessions:read',
  'sessions:erase',
  'audit:read',
  'webhooks:read',
  'webhooks:write',
  'events:read',
] as const;
/** Permissions that concern the whole process. */
export const PROCESS_SCOPES = ['metrics:read'] as const;
/** Permissions to manage the keys of the account, and to open accounts. */
export const MANAGEMENT_SCOPES = ['keys:write', 'accounts:write'] as const;
/** All permissions. Each key has at least one. */
export const SCOPES = [...ACCOUNT_SCOPES, ...PROCESS_SCOPES, ...MANAGEMENT_SCOPES] as const;
export type Scope = (typeof SCOPES)[number];

const Key = {
  key_id: Type.String(),
  name: ProtectedTextSchema(),
  hash: Type.String({
    description: 'SHA-256 of the whole key in hex; the secret itself is never stored',
  }),
  scopes: Type.Array(Type.Enum(ACCOUNT_SCOPES)),
  process_scopes: Type.Optional(
    Type.Array(Type.Enum(PROCESS_SCOPES), {
      description: 'Scopes that concern the whole process; earlier releases ignore them',
    }),
  ),
  management_scopes: Type.Optional(
    Type.Array(Type.Enum(MANAGEMENT_SCOPES), {
      description: 'Scopes that manage keys and accounts; earlier releases ignore them',
    }),
  ),
  expires_at: Type.Union([Instant, Type.Null()]),
};

type RecordedScopes = Pick<KeyData, 'scopes' | 'process_scopes' | 'management_scopes'>;

/** The scopes of a key as its events record them. Earlier releases refuse other values of `scopes`. */
export function recordedScopes(scopes: readonly Scope[]): RecordedScopes {
  const among = <Known extends Scope>(known: readonly Known[]): Known[] =>
    scopes.filter((scope): scope is Known => (known as readonly Scope[]).includes(scope));
  const [process_scopes, management_scopes] = [among(PROCESS_SCOPES), among(MANAGEMENT_SCOPES)];
  return {
    scopes: among(ACCOUNT_SCOPES),
    ...(process_scopes.length > 0 && { process_scopes }),
    ...(management_scopes.length > 0 && { management_scopes }),
  };
}

/** All scopes of a key, from one of its events. */
export const scopesOf = (key: RecordedScopes): Scope[] => [
  ...key.scopes,
  ...(key.process_scopes ?? []),
  ...(key.management_scopes ?? []),
];

const AccountOpened = eventSchema(
  'account.opened.v1',
  { name: ProtectedTextSchema() },
  'An account was opened',
);
const KeyIssued = eventSchema('account.key_issued.v1', Key, 'An API key was issued');
const KeyRevoked = eventSchema('account.key_revoked.v1', Key, 'An API key was revoked');
const KeyRotated = eventSchema(
  'account.key_rotated.v1',
  {
    key_id: Key.key_id,
    replaced_by: Key.key_id,
    expires_at: Instant,
    rotated_by: Type.Optional(
      Type.String({
        description:
          'The API key that rotated it; absent for an operator, and in events of earlier releases, which ignore it',
      }),
    ),
  },
  'An API key was replaced by another one, and expires',
);

/** The largest limit of an account. */
export const MAX_COUNT = 999_999_999_999_999;
const AtLeastOne = Type.Optional(Type.Integer({ minimum: 1 }));
/** 0 for no quota. */
const Quota = Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_COUNT }));
const LimitsSet = eventSchema(
  'account.limits_set.v1',
  {
    runs: AtLeastOne,
    prompt_bytes: AtLeastOne,
    requests_per_second: AtLeastOne,
    events_per_day: Quota,
    bytes_per_day: Quota,
    events: Quota,
    bytes: Quota,
    audits_per_day: Quota,
  },
  'What an account may take up was set: all its limits; what is absent is as everywhere',
);

/** At most a hundred years, because a longer period could exceed the range of dates. */
const Days = Type.Optional(Type.Integer({ minimum: 1, maximum: 36_500 }));
const RetentionSet = eventSchema(
  'account.retention_set.v1',
  { minimum_days: Days, maximum_days: Days },
  'How long sessions are kept was set, from their last event on: both bounds; what is absent is no bound',
);
const HoldSet = eventSchema(
  'account.hold_set.v1',
  { held: Type.Boolean(), reason: Type.Optional(Type.String({ maxLength: 256 })) },
  'A legal hold began or ended: while it lasts nothing of the account is erased',
);
const AccountErased = eventSchema(
  'account.erased.v1',
  AccountErasure.properties,
  'An account was closed for good, its keys revoked; all that it owns is erased',
);

export const accountEventSchemas = [
  AccountOpened,
  KeyIssued,
  KeyRevoked,
  KeyRotated,
  LimitsSet,
  RetentionSet,
  HoldSet,
  AccountErased,
] as const;

export type AccountEvent = EventOf<(typeof accountEventSchemas)[number]>;
export type KeyData = EventOf<typeof KeyIssued>['data'];
export type KeyRotatedData = EventOf<typeof KeyRotated>['data'];
/** Resource limits of an account. The default applies to absent limits. */
export type AccountLimits = EventOf<typeof LimitsSet>['data'];
export const LIMIT_NAMES = Object.keys(
  LimitsSet.properties.data.properties,
) as (keyof AccountLimits)[];
/** Minimum and maximum number of days for which sessions are kept after their last event. */
export type AccountRetention = EventOf<typeof RetentionSet>['data'];
/** Whether a legal hold prevents erasure in an account, and the reason. */
export type AccountHold = EventOf<typeof HoldSet>['data'];
export type AccountErasedData = EventOf<typeof AccountErased>['data'];
