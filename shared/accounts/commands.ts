import { claimedKeyId, hashApiKey, isStrongKey, mintApiKey } from './apiKey.ts';
import { account, type AccountCommand, type AccountState } from './decider.ts';
import {
  recordedScopes,
  type AccountEvent,
  type AccountHold,
  type AccountLimits,
  type AccountRetention,
  type KeyData,
  type Scope,
} from './events.ts';
import { TurnlogError } from '../lib/errors/turnlogError.ts';
import { requireName } from '../lib/validation/nameSchema.ts';
import { accountStream } from '../eventlog/streams.ts';
import { isoTime } from '../ports/clock.ts';
import { wordsKeyId } from '../search/wordTokens.ts';
import type { Position } from '../ports/eventStore.ts';
import type { Actor } from '../commandHandling/context.ts';
import { handle, type HandleContext } from '../commandHandling/handle.ts';
import { rememberedStreamTarget, type TargetStream } from '../commandHandling/targetStream.ts';

/**
 * The account `default`, which a first start opens. All replicas use the same id, so that only one
 * of them opens it.
 */
export const FIRST_ACCOUNT = 'acct_00000000000000000000000000';

/** The API keys in the remembered states of accounts. */
const REMEMBERED_KEYS = 5_000;

/** The account of the actor, as commands change it. */
export const accountTarget = ({
  account_id,
}: Actor): TargetStream<AccountCommand, AccountState, AccountEvent> =>
  rememberedStreamTarget(accountStream(account_id), account, {
    sizeOf: ({ keys }) => 1 + keys.length,
    maxSize: REMEMBERED_KEYS,
  });

/**
 * Opens the account of the actor. Errors: `invalid_request` for an invalid name, the rejection
 * `account_exists`, and those of handle.
 */
export async function openAccount(
  context: HandleContext,
  actor: Actor,
  name: string,
): Promise<Position | undefined> {
  const required = requireName(name);
  // Its id can be computed. While the key does not exist, a forged ciphertext could name it in another
  // stream, whose erasure would record it as destroyed.
  await context.store.keys.ensureKey(wordsKeyId(actor.account_id));
  const opened = await handle(context, actor, accountTarget(actor), {
    type: 'open_account',
    name: required,
  });
  return opened?.position;
}

/** The permissions and the lifetime of a new key. */
interface KeyGrant {
  name: string;
  scopes: readonly Scope[];
  /** Milliseconds since the epoch; null for a key that does not expire. */
  expiresAt: number | null;
}

/** A new key. The key itself can't be retrieved later. */
export interface MintedKey {
  api_key: string;
  data: KeyData;
}

const toInstant = (time: number | null): string | null => (time === null ? null : isoTime(time));

/** A key with this id, or the chosen key. Errors: `invalid_request` for an invalid name. */
export function createKey(
  newId: string,
  { name, scopes, expiresAt }: KeyGrant,
  api_key = mintApiKey(newId),
): MintedKey {
  const data = {
    key_id: claimedKeyId(api_key) ?? newId,
    name: requireName(name),
    hash: hashApiKey(api_key),
    ...recordedScopes(scopes),
    expires_at: toInstant(expiresAt),
  };
  return { api_key, data };
}

/**
 * Issues an API key to the actor's account. Resolves with the key itself, which can't be retrieved
 * later. `apiKey` is a key that the operator chose; by default, a new key is generated. With `isFirst`
 * the key is rejected if the account has had another one. Errors: `invalid_request` for an invalid
 * name, `configuration_invalid` for a weak chosen key, the rejections `account_missing` and
 * `key_exists`, and those of handle.
 */
export async function issueKey(
  context: HandleContext,
  actor: Actor,
  {
    apiKey,
    isFirst = false,
    ...grant
  }: KeyGrant & { apiKey?: string | undefined; isFirst?: boolean },
): Promise<{ key_id: string; api_key: string; position: Position | undefined }> {
  if (apiKey !== undefined && !isStrongKey(apiKey))
    throw new TurnlogError('configuration_invalid', 'The chosen API key is too easy to guess.');
  const { api_key, data } = createKey(context.ids.typeId('key'), grant, apiKey);
  const issued = await handle(context, actor, accountTarget(actor), {
    type: 'issue_key',
    key: data,
    isFirst,
  });
  return { key_id: data.key_id, api_key, position: issued?.position };
}

/**
 * Revokes a key of the actor's account. Resolves with undefined when the key was already revoked.
 * Errors: the rejections `account_missing` and `key_unknown`, and those of handle.
 */
export async function revokeKey(
  context: HandleContext,
  actor: Actor,
  key_id: string,
): Promise<Position | undefined> {
  const revoked = await handle(context, actor, accountTarget(actor), {
    type: 'revoke_key',
    key_id,
  });
  return revoked?.position;
}

/**
 * Sets limits of the actor's account; null removes a limit. Resolves with undefined when nothing
 * changes. Errors: the rejection `account_missing`, and those of handle.
 */
export async function setLimits(
  context: HandleContext,
  actor: Actor,
  limits: { [Name in keyof AccountLimits]?: number | null },
): Promise<Position | undefined> {
  const set = await handle(context, actor, accountTarget(actor), { type: 'set_limits', limits });
  return set?.position;
}

/**
 * Sets how long sessions of the actor's account are kept; null removes a bound. Resolves with
 * undefined when nothing changes. Errors: the rejections `account_missing` and `retention_invalid`,
 * and those of handle.
 */
export async function setRetention(
  context: HandleContext,
  actor: Actor,
  retention: { [Name in keyof AccountRetention]?: number | null },
): Promise<Position | undefined> {
  const command = { type: 'set_retention', retention } as const;
  return (await handle(context, actor, accountTarget(actor), command))?.position;
}

/**
 * Places the actor's account on legal hold, or ends the hold. Resolves with undefined when nothing
 * changes. Errors: the rejection `account_missing`, `event_invalid` for a reason that is too long,
 * and those of handle.
 */
export async function setHold(
  context: HandleContext,
  actor: Actor,
  hold: AccountHold,
): Promise<Position | undefined> {
  const set = await handle(context, actor, accountTarget(actor), { type: 'set_hold', hold });
  return set?.position;
}
