import { FIRST_ACCOUNT, issueKey, openAccount } from '../../../shared/accounts/commands.ts';
import { waitUntilVisible, type CommandContext } from '../../../shared/commandHandling/context.ts';
import { identifyKey } from '../../../shared/accounts/authenticate.ts';
import { SCOPES } from '../../../shared/accounts/events.ts';
import { isRejection, type RejectionCode } from '../../../shared/domain/rejection.ts';
import { isTurnlogError, storeUnavailableError } from '../../../shared/lib/errors/turnlogError.ts';
import { waitForReadModels } from './waitForReadModels.ts';

/** Resolves with undefined if the work is rejected with that code: another replica came first. */
const unlessRejectedAs = <Result>(
  code: RejectionCode,
  work: Promise<Result>,
): Promise<Result | undefined> =>
  work.catch((error: unknown) => {
    if (isRejection(error, code)) return undefined;
    throw error;
  });

/** A follower node of the cluster may not have the new account yet. */
function throwAccountNotReadable(error: unknown): never {
  if (!isRejection(error, 'account_missing')) throw error;
  throw storeUnavailableError("The new account can't be read yet.", error);
}

/** Warns if the operator's key does not work, because the log had other keys before. */
async function warnOfUnusableKey(
  { readModels, clock, logger }: CommandContext,
  operatorsKey: string,
): Promise<void> {
  try {
    const { principal } = await identifyKey(readModels, operatorsKey, clock.now());
    if (!principal)
      logger.warn(
        'BOOTSTRAP_API_KEY is not a valid key of this log, and is ignored: issue one with `npm run cli -- keys issue`',
      );
  } catch (error) {
    // Requests with the key report the same error, which must not prevent the start.
    if (!isTurnlogError(error)) throw error;
  }
}

/**
 * If no key was ever issued, opens the account `default` and issues it a key with every scope: the
 * operator's key or a new one. Resolves with the key once the read models show it, or with undefined
 * if there was a key already; then it warns of an operator's key that does not work.
 */
export async function issueBootstrapKey(
  context: CommandContext,
  operatorsKey: string | undefined,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (await context.readModels.hasApiKeys()) {
    if (operatorsKey !== undefined) await warnOfUnusableKey(context, operatorsKey);
    return undefined;
  }
  const actor = { account_id: FIRST_ACCOUNT, key_id: 'operator', request_id: 'bootstrap' };
  await unlessRejectedAs('account_exists', openAccount(context, actor, 'default'));
  const issued = await unlessRejectedAs(
    'key_exists',
    issueKey(context, actor, {
      name: 'bootstrap',
      scopes: SCOPES,
      expiresAt: null,
      apiKey: operatorsKey,
      // The check above is not enough: replicas that start together would each issue a key.
      isFirst: true,
    }).catch(throwAccountNotReadable),
  );
  if (issued?.position !== undefined) {
    await waitUntilVisible(context, issued.position);
    return issued.api_key;
  }
  // Another replica wrote the key: it lies before the current end of the log.
  await waitForReadModels(context, signal);
  if (operatorsKey !== undefined) await warnOfUnusableKey(context, operatorsKey);
  return undefined;
}
