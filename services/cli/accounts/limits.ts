import { InvalidArgumentError, type Command } from 'commander';
import { setLimits } from '../../../shared/accounts/commands.ts';
import type { AccountLimits } from '../../../shared/accounts/events.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { ReadModels } from '../../../shared/ports/readModels.ts';
import type { AccountRow } from '../../../shared/readModels/tables.ts';
import type { WithOperator } from '../context.ts';

interface Options {
  runs?: number;
  promptBytes?: number;
  requestsPerSecond?: number;
  clear?: true;
}

function parseCount(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text))
    throw new InvalidArgumentError('A limit is a positive integer.');
  return Number(text);
}

const NO_LIMITS = { runs: null, prompt_bytes: null, requests_per_second: null };

/** The changes that the options name; undefined if they name none. */
function parseChanges({ runs, promptBytes, requestsPerSecond, clear }: Options) {
  const changes = {
    ...(runs !== undefined && { runs }),
    ...(promptBytes !== undefined && { prompt_bytes: promptBytes }),
    ...(requestsPerSecond !== undefined && { requests_per_second: requestsPerSecond }),
  };
  if (clear) return { ...NO_LIMITS, ...changes };
  return Object.keys(changes).length > 0 ? changes : undefined;
}

/** Finds an account; rejects with `configuration_invalid` if there is none. */
export async function requireAccount(
  readModels: ReadModels,
  account_id: string,
): Promise<AccountRow> {
  const account = await readModels.findAccount(account_id);
  if (account) return account;
  throw new TurnlogError('configuration_invalid', `There is no account ${account_id}.`);
}

/** The limits that are set for an account, or a dash. */
export const describeLimits = (limits: AccountLimits): string =>
  Object.entries(limits)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ') || '-';

/** `accounts limits` */
export function addLimitsCommand(accounts: Command, run: WithOperator): void {
  accounts
    .command('limits')
    .description(
      'show or set the limits of an account; a running server applies them within a second',
    )
    .argument('<account_id>')
    .option('--runs <n>', 'runs in flight, on each process', parseCount)
    .option('--prompt-bytes <n>', 'bytes of the prompts of those runs, on each process', parseCount)
    .option('--requests-per-second <n>', 'of each API key of the account', parseCount)
    .option('--clear', 'remove its limits, except those given')
    .action((account_id: string, options: Options) =>
      run(async ({ operator, output }) => {
        const changes = parseChanges(options);
        const actor = { account_id, key_id: 'operator', request_id: 'cli' };
        if (changes) await setLimits(operator, actor, changes);
        const { limits } = await requireAccount(await operator.readModels(), account_id);
        output.show({ account_id, limits }, describeLimits(limits));
      }),
    );
}
