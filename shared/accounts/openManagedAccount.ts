import { TurnlogError } from '../lib/errors/turnlogError.ts';
import { requireName } from '../lib/validation/nameSchema.ts';
import { LIMITS } from '../limits.ts';
import { waitUntilVisible, type Actor, type CommandContext } from '../commandHandling/context.ts';
import { handle } from '../commandHandling/handle.ts';
import { createOnce, type Claim } from '../requests/idempotency.ts';
import { accountTarget, createKey } from './commands.ts';
import { ACCOUNT_SCOPES, type Scope } from './events.ts';
import { issuedRow, type IssuedKey } from './manageKeys.ts';

/** An account that a request opened, and its first key. */
export interface OpenedAccount {
  account_id: string;
  name: string;
  opened_at: string;
  key: IssuedKey;
}

/** The first key of an account manages the others, but opens no accounts. */
const FIRST_SCOPES: readonly Scope[] = [...ACCOUNT_SCOPES, 'keys:write'];

/** Throws `account_limit_reached`. */
export async function requireAccountRoom({
  readModels,
}: Pick<CommandContext, 'readModels'>): Promise<void> {
  const limit = LIMITS.accounts.opened;
  if ((await readModels.countAccounts()) >= limit)
    throw new TurnlogError(
      'account_limit_reached',
      `There are ${limit} accounts; only an operator can open more.`,
    );
}

async function openedBefore(
  { readModels }: CommandContext,
  accountId: string,
): Promise<OpenedAccount | undefined> {
  const opened = await readModels.findAccount(accountId);
  const { rows } = await readModels.listApiKeys(accountId, { limit: 1, bytes: Infinity });
  if (!opened || !rows[0]) return undefined;
  const { account_id, name, opened_at } = opened;
  return { account_id, name, opened_at, key: { row: rows[0], api_key: null } };
}

/**
 * Opens an account with a first key, which has all scopes of an account and `keys:write`. Both are
 * recorded at once, by the key that opens it. Only the first attempt of a request resolves with the
 * key itself. Errors: `invalid_request` for an invalid name, `account_limit_reached`, the rejection
 * `account_exists` for a concurrent attempt of the same request, and those of handle.
 */
export function openManagedAccount(
  context: CommandContext,
  opener: Actor,
  name: string,
  claim?: Claim,
): Promise<OpenedAccount> {
  const account_id = claim?.reserved.id ?? context.ids.typeId('acct');
  return createOnce(context, claim, {
    findExisting: () => openedBefore(context, account_id),
    async create() {
      await requireAccountRoom(context);
      const actor = { ...opener, account_id };
      const grant = { name: 'first key', scopes: FIRST_SCOPES, expiresAt: null };
      const { api_key, data } = createKey(context.ids.typeId('key'), grant);
      const command = { type: 'open_account', name: requireName(name), key: data } as const;
      const opened = (await handle(context, actor, accountTarget(actor), command))!;
      await waitUntilVisible(context, opened.position);
      const { recorded_at: opened_at } = opened;
      const row = issuedRow(actor, data, opened);
      return { account_id, name, opened_at, key: { row, api_key } };
    },
  });
}
