import { InvalidArgumentError, type Command } from 'commander';
import { setLimits } from '../../../shared/accounts/commands.ts';
import { LIMIT_NAMES, type AccountLimits } from '../../../shared/accounts/events.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { ReadModels } from '../../../shared/ports/readModels.ts';
import type { AccountRow } from '../../../shared/readModels/tables.ts';
import type { WithOperator } from '../context.ts';

type Changes = { [Name in keyof AccountLimits]?: number | null };

function parseCount(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text))
    throw new InvalidArgumentError('A limit is a positive integer of at most 15 digits.');
  return Number(text);
}

/** 0 means that the account has no such quota. */
const parseQuota = (text: string): number => (text === '0' ? 0 : parseCount(text));

/** The options by the limit that each sets: `--requests-per-second` for `requests_per_second`. */
const OPTIONS: Readonly<Record<keyof AccountLimits, [string, (text: string) => number]>> = {
  runs: ['runs in flight, on each process', parseCount],
  prompt_bytes: ['bytes of the prompts of those runs, on each process', parseCount],
  requests_per_second: ['of each API key of the account', parseCount],
  events_per_day: ['events that the account may add to the log per UTC day', parseQuota],
  bytes_per_day: ['bytes of the events that it may add per UTC day', parseQuota],
  events: ['events that it may have in the log', parseQuota],
  bytes: ['bytes of the events that it may have', parseQuota],
  audits_per_day: ['entries that its audit may get per UTC day', parseQuota],
};

/** The changes that the options name; undefined if they name none. */
function parseChanges(options: Record<string, number | true | undefined>): Changes | undefined {
  const changes = Object.fromEntries(
    LIMIT_NAMES.flatMap((name) => {
      const value = options[name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase())];
      return typeof value === 'number' ? [[name, value]] : [];
    }),
  );
  if (options['clear'])
    return { ...Object.fromEntries(LIMIT_NAMES.map((name) => [name, null])), ...changes };
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
  const limitsCommand = accounts
    .command('limits')
    .description(
      'show or set the limits of an account; a running server applies them within a second. For quotas (events, bytes, audits), 0 is none',
    )
    .argument('<account_id>');
  for (const name of LIMIT_NAMES)
    limitsCommand.option(`--${name.replaceAll('_', '-')} <n>`, ...OPTIONS[name]);
  limitsCommand
    .option('--clear', 'remove its limits, except those given')
    .action((account_id: string, options: Record<string, number | true | undefined>) =>
      run(async ({ operator, output }) => {
        const changes = parseChanges(options);
        const actor = { account_id, key_id: 'operator', request_id: 'cli' };
        if (changes) await setLimits(operator, actor, changes);
        const { limits } = await requireAccount(await operator.readModels(), account_id);
        output.show({ account_id, limits }, describeLimits(limits));
      }),
    );
}
