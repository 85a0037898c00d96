import { issueKey, openAccount } from '../../../shared/accounts/commands.ts';
import { waitUntilVisible, type CommandContext } from '../../../shared/commandHandling/context.ts';
import { SCOPES } from '../../../shared/accounts/events.ts';
import { isRejection, type RejectionCode } from '../../../shared/domain/rejection.ts';
import { storeUnavailableError } from '../../../shared/lib/errors/turnlogError.ts';
import { waitForReadModels } from './waitForReadModels.ts';

/**
 * The account of the first key. Every replica of a first start names the same one, so that they
 * can't open one each: the first to append opens it, and the others find it open.
 */
const FIRST_ACCOUNT = 'acct_00000000000000000000000000';

/**
 * Undefined where the work was rejected so, because another replica came first. Errors: any other
 * of the work's own.
 */
const unlessRejectedAs = <Result>(
  code: RejectionCode,
  work: Promise<Result>,
): Promise<Result | undefined> =>
  work.catch((error: unknown) => {
    if (isRejection(error, code)) return undefined;
    throw error;
  });

/** A node that only follows may not have the account yet that was opened a moment ago. */
function throwAccountNotReadable(error: unknown): never {
  if (!isRejection(error, 'account_missing')) throw error;
  throw storeUnavailableError("The account that was opened just now can't be read yet.", error);
}

/**
 * Where no key was ever issued: opens the account `default` and issues it a key with every scope,
 * the operator's own or a new one. Resolves with the key, undefined where there was one already;
 * every later query finds it then.
 * Errors: `store_unavailable`, the signal's reason.
 */
export async function bootstrap(
  context: CommandContext,
  operatorsKey: string | undefined,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (await context.readModels.hasApiKeys()) return undefined;
  const actor = { account_id: FIRST_ACCOUNT, key_id: 'operator', request_id: 'bootstrap' };
  await unlessRejectedAs('account_exists', openAccount(context, actor, 'default'));
  const issued = await unlessRejectedAs(
    'key_exists',
    issueKey(context, actor, {
      name: 'bootstrap',
      scopes: SCOPES,
      expiresAt: null,
      apiKey: operatorsKey,
    }).catch(throwAccountNotReadable),
  );
  // What another replica has written lies before the end.
  if (issued?.position !== undefined) await waitUntilVisible(context, issued.position);
  else await waitForReadModels(context, signal);
  return issued?.api_key;
}
