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

export type AccountCommand =
  | { type: 'open_account'; name: string }
  | { type: 'issue_key'; key: KeyData }
  | { type: 'revoke_key'; key_id: string }
  /** Null removes a limit. Absent limits do not change. */
  | { type: 'set_limits'; limits: { [Name in keyof AccountLimits]?: number | null } }
  | { type: 'set_retention'; retention: { [Name in keyof AccountRetention]?: number | null } }
  | { type: 'set_hold'; hold: AccountHold }
  | ({ type: 'erase_account' } & AccountErasedData);

export interface AccountState {
  opened: boolean;
  erased: boolean;
  keys: Readonly<Record<string, KeyData & { revoked: boolean }>>;
  limits: AccountLimits;
  retention: AccountRetention;
  hold: AccountHold;
}

/**
 * Also compares hashes, because two replicas may issue the same chosen key under different ids at
 * once.
 */
const isIssued = ({ keys }: AccountState, { key_id, hash }: KeyData): boolean =>
  keys[key_id] !== undefined || Object.values(keys).some((key) => key.hash === hash);
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

function decide(command: AccountCommand, state: AccountState): AccountEvent[] {
  if (command.type === 'open_account') {
    if (state.opened) throw new Rejection('account_exists', 'The account is open already.');
    return [{ type: 'account.opened.v1', data: { name: command.name } }];
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
      if (isIssued(state, command.key))
        throw new Rejection('key_exists', 'A key of this id, or this key, was issued already.');
      return [{ type: 'account.key_issued.v1', data: command.key }];
    case 'revoke_key': {
      const key = state.keys[command.key_id];
      if (!key) throw new Rejection('key_unknown', 'The account has no such key.');
      const { revoked, ...data } = key;
      return revoked ? [] : [{ type: 'account.key_revoked.v1', data }];
    }
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
      return {
        ...state,
        keys: { ...state.keys, [event.data.key_id]: { ...event.data, revoked: false } },
      };
    case 'account.key_revoked.v1':
      return {
        ...state,
        keys: { ...state.keys, [event.data.key_id]: { ...event.data, revoked: true } },
      };
    case 'account.limits_set.v1':
      return { ...state, limits: event.data };
    case 'account.retention_set.v1':
      return { ...state, retention: event.data };
    case 'account.hold_set.v1':
      return { ...state, hold: event.data };
    case 'account.erased.v1':
      return { ...state, erased: true };
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
    keys: {},
    limits: {},
    retention: {},
    hold: { held: false },
  },
  decide,
  evolve,
};
