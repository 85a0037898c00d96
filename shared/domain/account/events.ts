import { Type } from 'typebox';
import { eventSchema, Instant, type EventOf } from '../schema.ts';

/** What a key allows. A key holds one or more. */
export const SCOPES = ['agents:read', 'agents:write', 'agents:run', 'sessions:read'] as const;
export type Scope = (typeof SCOPES)[number];

const Key = {
  key_id: Type.String(),
  name: Type.String(),
  hash: Type.String({
    description: 'SHA-256 of the whole key in hex; the secret itself is never stored',
  }),
  scopes: Type.Array(Type.Enum(SCOPES)),
  expires_at: Type.Union([Instant, Type.Null()]),
};

export const AccountOpened = eventSchema(
  'account.opened.v1',
  { name: Type.String() },
  'An account was opened',
);
export const KeyIssued = eventSchema('account.key_issued.v1', Key, 'An API key was issued');
export const KeyRevoked = eventSchema('account.key_revoked.v1', Key, 'An API key was revoked');

export const accountEventSchemas = [AccountOpened, KeyIssued, KeyRevoked] as const;

export type AccountEvent = EventOf<(typeof accountEventSchemas)[number]>;
export type KeyData = EventOf<typeof KeyIssued>['data'];
