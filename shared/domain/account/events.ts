import { Type } from 'typebox';
import { eventSchema, Instant, ProtectedText, type EventOf } from '../schema.ts';

/** What a key allows. A key holds one or more. */
export const SCOPES = [
  'agents:read',
  'agents:write',
  'agents:run',
  'agents:erase',
  'sessions:read',
  'sessions:erase',
  'audit:read',
] as const;
export type Scope = (typeof SCOPES)[number];

const Key = {
  key_id: Type.String(),
  name: ProtectedText(),
  hash: Type.String({
    description: 'SHA-256 of the whole key in hex; the secret itself is never stored',
  }),
  scopes: Type.Array(Type.Enum(SCOPES)),
  expires_at: Type.Union([Instant, Type.Null()]),
};

export const AccountOpened = eventSchema(
  'account.opened.v1',
  { name: ProtectedText() },
  'An account was opened',
);
export const KeyIssued = eventSchema('account.key_issued.v1', Key, 'An API key was issued');
export const KeyRevoked = eventSchema('account.key_revoked.v1', Key, 'An API key was revoked');

const AtLeastOne = Type.Optional(Type.Integer({ minimum: 1 }));
export const LimitsSet = eventSchema(
  'account.limits_set.v1',
  { runs: AtLeastOne, prompt_bytes: AtLeastOne, requests_per_second: AtLeastOne },
  'What an account may take up was set: all its limits; what is absent is as everywhere',
);

export const accountEventSchemas = [AccountOpened, KeyIssued, KeyRevoked, LimitsSet] as const;

export type AccountEvent = EventOf<(typeof accountEventSchemas)[number]>;
export type KeyData = EventOf<typeof KeyIssued>['data'];
/** What an account may take up at a time; what is absent is limited as for every account. */
export type AccountLimits = EventOf<typeof LimitsSet>['data'];
