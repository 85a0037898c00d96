import type { Decider } from '../domain/decider.ts';
import { Rejection } from '../domain/rejection.ts';
import {
  LIMIT_NAMES,
  type AccountErasedData,
  type AccountEvent,
  type AccountHold,
  type AccountLimits,
  type AccountRetention,
  type KeyData,
} from './events.ts';
import {
  changeKey,
  endsOfRotation,
  isActiveKey,
  toKeyData,
  requireIssuable,
  requireKey,
  requireNewKey,
  requireRevocable,
  rotatedAs,
  type AccountKey,
  type KeyManager,
  type KeyRotation,
} from './keyRules.ts';

/** Commands about keys that name no manager are the operator's. */
export type AccountCommand =
  /** With a first key, where a client opens the account. */
  | { type: 'open_account'; name: string; key?: KeyData }
  /** With `isFirst` only if the account never had a key. */
  | { type: 'issue_key'; key: KeyData; isFirst?: boolean; by?: KeyManager | undefined }
  | { type: 'revoke_key'; key_id: string; by?: KeyManager | undefined }
  | { type: 'rotate_key'; key_id: string; rotation: KeyRotation; by?: KeyManager | undefined }
  /** Null removes a limit. Absent limits do not change. */
  | { type: 'set_limits'; limits: { [Name in keyof AccountLimits]?: number | null } }
  | { type: 'set_retention'; retention: { [Name in keyof AccountRetention]?: number | null } }
  | { type: 'set_hold'; hold: AccountHold }
  | ({ type: 'erase_account' } & AccountErasedData);

export interface AccountState {
  opened: boolean;
  erased: boolean;
  /** Oldest first, including revoked and expired ones. */
  keys: readonly AccountKey[];
  limits: AccountLimits;
  retention: AccountRetention;
  hold: AccountHold;
}

const BOUNDS = ['minimum_days', 'maximum_days'] as const;

function setRetention(
  requested: { [Name in keyof AccountRetention]?: number | null },
  { retention }: AccountState,
): AccountEvent[] {
  const merged = { ...retention, ...requested };
  if (BOUNDS.every((name) => (merged[name] ?? undefined) === retention[name])) return [];
  const set = BOUNDS.filter((name) => typeof merged[name] === 'number');
  const data: AccountRetention = Object.fromEntries(set.map((name) => [name, merged[name]]));
  if ((data.minimum_days ?? 0) > (data.maximum_days ?? Infinity))
    throw new Rejection(
      'retention_invalid',
      `Sessions can't be kept for at least ${data.minimum_days} days and for at most ${data.maximum_days}.`,
    );
  return [{ type: 'account.retention_set.v1', data }];
}

function setHold({ held, reason }: AccountHold, { hold }: AccountState): AccountEvent[] {
  if (held === hold.held && (!held || reason === hold.reason)) return [];
  return [{ type: 'account.hold_set.v1', data: { held, ...(reason !== undefined && { reason }) } }];
}

function issueKey(
  { key, isFirst, by }: Extract<AccountCommand, { type: 'issue_key' }>,
  { keys }: AccountState,
): AccountEvent[] {
  requireNewKey(keys, key);
  if (isFirst && keys.length > 0)
    throw new Rejection('key_exists', 'The account has had a key already.');
  if (by) requireIssuable(keys, key, by);
  return [{ type: 'account.key_issued.v1', data: key }];
}

function revokeKey(
  { key_id, by }: Extract<AccountCommand, { type: 'revoke_key' }>,
  { keys }: AccountState,
): AccountEvent[] {
  const key = requireKey(keys, key_id);
  if (key.revoked) return [];
  if (by) requireRevocable(keys, key, by);
  return [{ type: 'account.key_revoked.v1', data: toKeyData(key) }];
}

function rotateKey(
  { key_id, rotation, by }: Extract<AccountCommand, { type: 'rotate_key' }>,
  { keys }: AccountState,
): AccountEvent[] {
  const old = requireKey(keys, key_id);
  const { key, now } = rotation;
  requireNewKey(keys, key);
  if (!isActiveKey(old, now))
    throw new Rejection('key_inactive', 'A revoked or expired key has no successor.');
  const before = toKeyData(old);
  const ends = endsOfRotation(old, rotation);
  const replacement = { ...before, ...key, expires_at: ends.replacement };
  const isRevoked = Date.parse(ends.old) <= now;
  if (by) requireIssuable(keys, replacement, by, { key_id, isRevoked });
  const expires_at = ends.old;
  const after = { ...before, expires_at };
  const rotated_by = by && { rotated_by: by.key_id };
  const rotated = { key_id, replaced_by: key.key_id, expires_at, ...rotated_by };
  return [
    { type: 'account.key_issued.v1', data: replacement },
    { type: 'account.key_rotated.v1', data: rotated },
    ...(isRevoked ? [{ type: 'account.key_revoked.v1', data: after } as const] : []),
  ];
}

function decide(command: AccountCommand, state: AccountState): AccountEvent[] {
  if (command.type === 'open_account') {
    if (state.opened) throw new Rejection('account_exists', 'The account is open already.');
    const { name, key } = command;
    return [
      { type: 'account.opened.v1', data: { name } },
      ...(key ? [{ type: 'account.key_issued.v1', data: key } as const] : []),
    ];
  }
  if (!state.opened) throw new Rejection('account_missing', 'There is no such account.');
  if (command.type === 'erase_account') {
    if (state.erased) return [];
    if (state.hold.held) throw new Rejection('account_held', 'The account is on legal hold.');
    const { type: _, ...data } = command;
    return [{ type: 'account.erased.v1', data }];
  }
  if (state.erased) throw new Rejection('account_erased', 'The account was erased.');
  switch (command.type) {
    case 'issue_key':
      return issueKey(command, state);
    case 'revoke_key':
      return revokeKey(command, state);
    case 'rotate_key':
      return rotateKey(command, state);
    case 'set_limits': {
      const requested = { ...state.limits, ...command.limits };
      if (LIMIT_NAMES.every((name) => (requested[name] ?? undefined) === state.limits[name]))
        return [];
      const set = LIMIT_NAMES.filter((name) => typeof requested[name] === 'number');
      const data: AccountLimits = Object.fromEntries(set.map((name) => [name, requested[name]]));
      return [{ type: 'account.limits_set.v1', data }];
    }
    case 'set_retention':
      return setRetention(command.retention, state);
    case 'set_hold':
      return setHold(command.hold, state);
    default:
      return command satisfies never;
  }
}

function evolve(state: AccountState, event: AccountEvent): AccountState {
  switch (event.type) {
    case 'account.opened.v1':
      return { ...state, opened: true };
    case 'account.key_issued.v1':
      return { ...state, keys: [...state.keys, { ...event.data, revoked: false }] };
    case 'account.key_revoked.v1': {
      const keys = changeKey(state.keys, event.data.key_id, () => ({ revoked: true }));
      return { ...state, keys };
    }
    case 'account.key_rotated.v1': {
      const keys = changeKey(state.keys, event.data.key_id, rotatedAs(event.data));
      return { ...state, keys };
    }
    case 'account.limits_set.v1':
      return { ...state, limits: event.data };
    case 'account.retention_set.v1':
      return { ...state, retention: event.data };
    case 'account.hold_set.v1':
      return { ...state, hold: event.data };
    case 'account.erased.v1':
      return { ...state, keys: [], erased: true };
    default:
      return event satisfies never;
  }
}

/**
 * An account with its API keys, limits, retention and legal hold. Commands that would change
 * nothing, such as revoking a revoked key or erasing an erased account, produce no events. An
 * erased account rejects all other commands.
 */
export const account: Decider<AccountCommand, AccountState, AccountEvent> = {
  initialState: {
    opened: false,
    erased: false,
    keys: [],
    limits: {},
    retention: {},
    hold: { held: false },
  },
  decide,
  evolve,
};
