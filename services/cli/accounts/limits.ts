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
    throw new InvalidArgumentError('A limit is a whole number from 1 on.');
  return Number(text);
}

const NO_LIMITS = { runs: null, prompt_bytes: null, requests_per_second: null };

/** What is to be changed; undefined where nothing is. */
function parseChanges({ runs, promptBytes, requestsPerSecond, clear }: Options) {
  const given = {
    ...(runs !== undefined && { runs }),
    ...(promptBytes !== undefined && { prompt_bytes: promptBytes }),
    ...(requestsPerSecond !== undefined && { requests_per_second: requestsPerSecond }),
  };
  if (clear) return { ...NO_LIMITS, ...given };
  return Object.keys(given).length > 0 ? given : undefined;
}

/** An account that an operator names. Errors: `configuration_invalid` where there is none. */
export async function requireAccount(
  readModels: ReadModels,
  account_id: string,
): Promise<AccountRow> {
  const found = await readModels.findAccount(account_id);
  if (found) return found;
  throw new TurnlogError('configuration_invalid', `There is no account ${account_id}.`);
}

/** The limits that an account has of its own; a dash where it has none. */
export const describeLimits = (limits: AccountLimits): string =>
  Object.entries(limits)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ') || '-';

/** `accounts limits` */
export function addLimitsCommand(accounts: Command, run: WithOperator): void {
  accounts
    .command('limits')
    .description('show or set what an account may take up; a running server obeys within a second')
    .argument('<account_id>')
    .option('--runs <n>', 'runs in flight, on each process', parseCount)
    .option('--prompt-bytes <n>', 'bytes of their prompts, on each process', parseCount)
    .option('--requests-per-second <n>', 'of each API key of the account', parseCount)
    .option('--clear', 'take its limits away, but for those that are given')
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
