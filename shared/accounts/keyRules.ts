import { Rejection } from '../domain/rejection.ts';
import { scopesOf, type KeyData, type KeyRotatedData } from './events.ts';
import { KEY_LIMITS } from './limits.ts';

export type AccountKey = KeyData & {
  revoked: boolean;
  /**
   * The newest key that replaced this one, when this one would expire otherwise, and the manager that
   * made all of its rotations, if only one did.
   */
  replaced?: { by: string; end: string | null; manager: string | undefined };
};

/** The data of a key in its events. */
export function toKeyData(key: AccountKey): KeyData {
  const { revoked: _revoked, replaced: _replaced, ...data } = key;
  return data;
}

/** When a key expires, or would if it had not been replaced. */
const grantedEnd = ({ expires_at, replaced }: AccountKey): string | null =>
  replaced ? replaced.end : expires_at;

/** The API key that manages keys, and the time in milliseconds since the epoch. */
export interface KeyManager {
  key_id: string;
  now: number;
}

/** Throws the rejection `key_unknown`. */
export function requireKey(keys: readonly AccountKey[], key_id: string): AccountKey {
  const key = keys.findLast((entry) => entry.key_id === key_id);
  if (!key) throw new Rejection('key_unknown', 'The account has no such key.');
  return key;
}

/** The keys with a change to one of them. */
export function changeKey(
  keys: readonly AccountKey[],
  key_id: string,
  change: (key: AccountKey) => Partial<AccountKey>,
): readonly AccountKey[] {
  const at = keys.findLastIndex((key) => key.key_id === key_id);
  const key = keys[at];
  return key ? keys.with(at, { ...key, ...change(key) }) : keys;
}

/** The change of a key that another one replaces. */
export const rotatedAs =
  ({ replaced_by, expires_at, rotated_by }: KeyRotatedData) =>
  (key: AccountKey): Partial<AccountKey> => {
    const isSameManager = !key.replaced || key.replaced.manager === rotated_by;
    const manager = isSameManager ? rotated_by : undefined;
    return { expires_at, replaced: { by: replaced_by, end: grantedEnd(key), manager } };
  };

export const isActiveKey = (
  { revoked, expires_at }: Pick<AccountKey, 'revoked' | 'expires_at'>,
  now: number,
): boolean => !revoked && (expires_at === null || Date.parse(expires_at) > now);

/**
 * Throws the rejection `key_exists`. Also compares hashes, because two replicas may issue the same
 * chosen key under different ids at once.
 */
export function requireNewKey(
  keys: readonly AccountKey[],
  { key_id, hash }: Pick<KeyData, 'key_id' | 'hash'>,
): void {
  if (keys.some((key) => key.key_id === key_id || key.hash === hash))
    throw new Rejection('key_exists', 'A key of this id, or this key, was issued already.');
}

const isManager = (key: AccountKey, now: number): boolean =>
  isActiveKey(key, now) && scopesOf(key).includes('keys:write');

/**
 * The key that manages others. The log decides whether it may, because the read models may not show
 * its revocation yet. Throws the rejection `manager_invalid`.
 */
function requireManager(keys: readonly AccountKey[], { key_id, now }: KeyManager): AccountKey {
  const manager = keys.findLast((key) => key.key_id === key_id);
  if (!manager || !isManager(manager, now))
    throw new Rejection('manager_invalid', 'The key may not manage keys, or no longer.');
  return manager;
}

/** A key manages only keys that may do no more than itself. Throws `key_scopes_exceeded`. */
function requireScopesWithin(manager: AccountKey, key: KeyData): void {
  const own = scopesOf(manager);
  const exceeding = scopesOf(key).filter((scope) => !own.includes(scope));
  if (exceeding.length > 0)
    throw new Rejection(
      'key_scopes_exceeded',
      `This API key lacks ${exceeding.join(', ')}, and can't manage a key that has more scopes than itself.`,
    );
}

/**
 * True for a manager that has replaced itself, and for the keys that it has issued in its own place,
 * one after the other; not those that follow a key which another manager or an operator has rotated.
 */
function isOwnSuccession(
  keys: readonly AccountKey[],
  manager: AccountKey,
  key_id: string,
): boolean {
  const byId = new Map(keys.map((key) => [key.key_id, key]));
  let key: AccountKey | undefined = manager;
  while (key?.replaced && key.replaced.manager === manager.key_id) {
    const { by } = key.replaced;
    if (key.key_id === key_id || by === key_id) return true;
    key = byId.get(by);
  }
  return false;
}

/**
 * The latest end of a key that the manager issues. A key that has replaced itself can replace itself
 * and its successors again as if it had not been: the answer with the successor may be lost. A key
 * that another one has replaced, for example because it leaked, can't prolong its life this way.
 */
const latestEnd = (
  keys: readonly AccountKey[],
  manager: AccountKey,
  replaced: string | undefined,
): string | null =>
  replaced !== undefined && isOwnSuccession(keys, manager, replaced)
    ? grantedEnd(manager)
    : manager.expires_at;

/**
 * `old` is the key that the new one replaces, if any, and whether that is revoked at once. Throws the
 * rejections `manager_invalid`, `key_scopes_exceeded`, `key_outlives_manager` and `key_limit`.
 */
export function requireIssuable(
  keys: readonly AccountKey[],
  key: KeyData,
  by: KeyManager,
  old?: { key_id: string; isRevoked: boolean },
): void {
  const manager = requireManager(keys, by);
  requireScopesWithin(manager, key);
  const end = latestEnd(keys, manager, old?.key_id);
  if (end !== null && (key.expires_at === null || key.expires_at > end))
    throw new Rejection(
      'key_outlives_manager',
      `must end at ${end} at the latest, when the key that issues it expires`,
    );
  const { active, issued } = KEY_LIMITS.keys;
  if (keys.length >= issued)
    throw new Rejection(
      'key_limit',
      `The account has had ${issued} keys; only an operator can issue more.`,
    );
  const activeKeys = keys.filter(
    (other) => isActiveKey(other, by.now) && !(old?.isRevoked && other.key_id === old.key_id),
  );
  if (activeKeys.length >= active)
    throw new Rejection(
      'key_limit',
      `The account has ${active} keys, and may have no more: revoke one.`,
    );
}

/**
 * Throws the rejections `manager_invalid`, `key_scopes_exceeded`, and `last_manager` for a key that
 * would leave the account without a key that can issue another one.
 */
export function requireRevocable(
  keys: readonly AccountKey[],
  key: AccountKey,
  by: KeyManager,
): void {
  requireScopesWithin(requireManager(keys, by), key);
  const isOther = (other: AccountKey): boolean => other.key_id !== key.key_id;
  if (!keys.some((other) => isOther(other) && isManager(other, by.now)))
    throw new Rejection('last_manager', 'No other key of the account could issue keys.');
}

/** How a key is replaced by another one of the same name and scopes. */
export interface KeyRotation {
  key: Pick<KeyData, 'key_id' | 'hash'>;
  /** When the new key expires; by default, when the old one would have if it was never replaced. */
  expires_at: string | null | undefined;
  /** In milliseconds since the epoch. */
  now: number;
  /** Until when the old key stays valid. It is revoked if that is not after `now`. */
  until: string;
}

/** When the old and the new key of a rotation expire. */
export function endsOfRotation(
  old: AccountKey,
  { expires_at = grantedEnd(old), until }: KeyRotation,
): { old: string; replacement: string | null } {
  const { expires_at: before } = old;
  return {
    old: before !== null && before < until ? before : until,
    replacement: expires_at,
  };
}
