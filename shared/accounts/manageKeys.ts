import { runExclusiveFairly } from '../lib/concurrency/keyedMutex.ts';
import { TurnlogError } from '../lib/errors/turnlogError.ts';
import { accountStream, isIdOf } from '../eventlog/streams.ts';
import { LIMITS } from '../limits.ts';
import { isoTime } from '../ports/clock.ts';
import type { ApiKeyRow } from '../readModels/tables.ts';
import { waitUntilVisible, type Actor, type CommandContext } from '../commandHandling/context.ts';
import { handleLoaded } from '../commandHandling/handle.ts';
import { authorOf } from '../commandHandling/prepareEvents.ts';
import type { AppendedBatch } from '../eventlog/append.ts';
import { createOnce, type Claim } from '../requests/idempotency.ts';
import { accountTarget, createKey, type MintedKey } from './commands.ts';
import { account, type AccountCommand, type AccountState } from './decider.ts';
import { endsOfRotation, requireKey, type KeyRotation } from './keyRules.ts';
import { scopesOf, type KeyData, type Scope } from './events.ts';
import { hashApiKey, mintApiKey } from './apiKey.ts';

/** A key that a request issued. */
export interface IssuedKey {
  row: ApiKeyRow;
  /** The key itself. Null when the request is repeated, because it is stored nowhere. */
  api_key: string | null;
}

/** The same error for an unknown key and for one of another account. */
export const keyNotFoundError = (): TurnlogError =>
  new TurnlogError('key_not_found', 'There is no such API key.');

const SECOND_MS = 1_000;

const managerOf = ({ clock }: CommandContext, { key_id }: Actor) => ({ key_id, now: clock.now() });

/**
 * Commands of one account run one after the other, because concurrent ones would only conflict. They
 * reserve no memory to read: one at a time takes little, and a key can be revoked whatever else the
 * account's requests read. Resolves with the state before, and what was appended.
 */
async function changeAccount(
  context: CommandContext,
  actor: Actor,
  command: AccountCommand,
): Promise<{ before: AccountState; appended: AppendedBatch | undefined }> {
  const authored = { author: authorOf(actor), command };
  const { account_id } = actor;
  const lock = { owner: context.store, key: accountStream(account_id), account_id };
  const { loaded, appended } = await runExclusiveFairly(lock, () =>
    handleLoaded({ ...context, reserveRead: undefined }, accountTarget(actor), () => authored),
  );
  if (appended) await waitUntilVisible(context, appended.position);
  return { before: loaded.state, appended };
}

/** Throws what the command would throw, and records nothing. */
async function requireAccepted(
  context: CommandContext,
  actor: Actor,
  command: AccountCommand,
): Promise<void> {
  account.decide(command, (await accountTarget(actor).load(context)).state);
}

/** The row of a key that the actor has just issued. */
export const issuedRow = (
  { account_id, key_id: issued_by }: Actor,
  data: KeyData,
  { recorded_at: issued_at, head: { revision } }: AppendedBatch,
): ApiKeyRow => ({
  key_id: data.key_id,
  account_id,
  name: data.name,
  hash: data.hash,
  scopes: scopesOf(data),
  issued_at,
  issued_by,
  expires_at: data.expires_at,
  replaced_by: null,
  revoked_at: null,
  revoked_by: null,
  revision,
});

/** The account's key with this id. Errors: `key_not_found`, `store_unavailable`. */
export async function findOwnKey(
  { readModels }: Pick<CommandContext, 'readModels'>,
  accountId: string,
  keyId: string,
): Promise<ApiKeyRow> {
  const row = isIdOf('key', keyId) ? await readModels.findApiKey(keyId) : undefined;
  if (row?.account_id !== accountId) throw keyNotFoundError();
  return row;
}

/** The key that an earlier attempt of the request issued, without the key itself. */
async function issuedBefore(
  { readModels }: CommandContext,
  keyId: string,
): Promise<IssuedKey | undefined> {
  const row = await readModels.findApiKey(keyId);
  return row && { row, api_key: null };
}

interface KeyInput {
  name: string;
  scopes: readonly Scope[];
  expires_in_seconds?: number;
}

function issueCommand(
  context: CommandContext,
  actor: Actor,
  { name, scopes, expires_in_seconds: seconds }: KeyInput,
  keyId: string,
): { minted: MintedKey; command: AccountCommand } {
  const by = managerOf(context, actor);
  const expiresAt = seconds === undefined ? null : by.now + seconds * SECOND_MS;
  const minted = createKey(keyId, { name, scopes, expiresAt });
  return { minted, command: { type: 'issue_key', key: minted.data, by } };
}

/** Throws what `issueManagedKey` would throw, and records nothing. */
export const requireKeyIssuable = (
  context: CommandContext,
  actor: Actor,
  input: KeyInput,
): Promise<void> =>
  requireAccepted(
    context,
    actor,
    issueCommand(context, actor, input, context.ids.typeId('key')).command,
  );

/**
 * Issues a key to the actor's account, with no more scopes and no later end than the actor's own
 * key. Only the first attempt of a request resolves with the key itself. Errors: the rejections
 * `manager_invalid`, `key_scopes_exceeded`, `key_outlives_manager`, `key_limit`, and `key_exists`
 * for a concurrent attempt of the same request; those of handle.
 */
export function issueManagedKey(
  context: CommandContext,
  actor: Actor,
  input: KeyInput,
  claim?: Claim,
): Promise<IssuedKey> {
  const key_id = claim?.reserved.id ?? context.ids.typeId('key');
  return createOnce(context, claim, {
    findExisting: () => issuedBefore(context, key_id),
    async create() {
      const { minted, command } = issueCommand(context, actor, input, key_id);
      const { appended } = await changeAccount(context, actor, command);
      return { row: issuedRow(actor, minted.data, appended!), api_key: minted.api_key };
    },
  });
}

interface RotationInput {
  /** Of the key that is replaced. */
  key_id: string;
  overlap_seconds?: number;
  expires_in_seconds?: number;
}

/** A key that a request issued in place of another one. */
interface RotatedKey {
  issued: IssuedKey;
  /** Until when the other key stays valid. */
  old_expires_at: string;
}

function rotationOf(
  now: number,
  {
    overlap_seconds = LIMITS.keys.defaultOverlapSeconds,
    expires_in_seconds: seconds,
  }: Omit<RotationInput, 'key_id'>,
  key: KeyRotation['key'],
): KeyRotation {
  const after = (duration: number): string => isoTime(now + duration * SECOND_MS);
  const expires_at = seconds === undefined ? undefined : after(seconds);
  return { key, now, until: after(overlap_seconds), expires_at };
}

/** Throws what `rotateManagedKey` would throw, and records nothing. */
export async function requireKeyRotatable(
  context: CommandContext,
  actor: Actor,
  { key_id: keyId, ...input }: RotationInput,
): Promise<void> {
  const { key_id } = await findOwnKey(context, actor.account_id, keyId);
  const by = managerOf(context, actor);
  const key = { key_id: context.ids.typeId('key'), hash: '' };
  const rotation = rotationOf(by.now, input, key);
  await requireAccepted(context, actor, { type: 'rotate_key', key_id, rotation, by });
}

/**
 * Issues a key with the name and the scopes of another key of the actor's account, which expires
 * after the overlap. Only the first attempt of a request resolves with the new key itself. Errors:
 * `key_not_found`, the rejections of issueManagedKey and `key_inactive`, those of handle.
 */
export async function rotateManagedKey(
  context: CommandContext,
  actor: Actor,
  { key_id: keyId, ...input }: RotationInput,
  claim?: Claim,
): Promise<RotatedKey> {
  const old = await findOwnKey(context, actor.account_id, keyId);
  const key_id = claim?.reserved.id ?? context.ids.typeId('key');
  return createOnce(context, claim, {
    async findExisting() {
      const issued = await issuedBefore(context, key_id);
      return issued && { issued, old_expires_at: old.expires_at! };
    },
    async create() {
      const api_key = mintApiKey(key_id);
      const replacement = { key_id, hash: hashApiKey(api_key) };
      const by = managerOf(context, actor);
      const rotation = rotationOf(by.now, input, replacement);
      const command = { type: 'rotate_key', key_id: keyId, rotation, by } as const;
      const { before, appended } = await changeAccount(context, actor, command);
      const { recorded_at: issued_at } = appended!;
      const ends = endsOfRotation(requireKey(before.keys, keyId), rotation);
      const issued_by = actor.key_id;
      const { hash } = replacement;
      const row = { ...old, key_id, hash, issued_at, issued_by, expires_at: ends.replacement };
      return { issued: { row, api_key }, old_expires_at: ends.old };
    },
  });
}

/**
 * Revokes a key of the actor's account, or does nothing if it is revoked. Errors: `key_not_found`,
 * the rejections `manager_invalid`, `key_scopes_exceeded` and `last_manager`, those of handle.
 */
export async function revokeManagedKey(
  context: CommandContext,
  actor: Actor,
  keyId: string,
): Promise<void> {
  const { key_id } = await findOwnKey(context, actor.account_id, keyId);
  await changeAccount(context, actor, {
    type: 'revoke_key',
    key_id,
    by: managerOf(context, actor),
  });
}
