import { Argument, InvalidArgumentError, type Command } from 'commander';
import { setHold, setRetention } from '../../../shared/accounts/commands.ts';
import type { AccountHold, AccountRetention } from '../../../shared/accounts/events.ts';
import { requireAccount } from './limits.ts';
import type { WithOperator } from '../context.ts';
import { usageError } from '../failure.ts';
import { parseShortReason } from '../reason.ts';

const LONGEST_DAYS = 36_500;

/** A number of days; null for `none`. */
function parseDays(text: string): number | null {
  if (text === 'none') return null;
  const days = /^[1-9]\d{0,4}$/.test(text) ? Number(text) : NaN;
  if (!(days <= LONGEST_DAYS))
    throw new InvalidArgumentError(`Days are a whole number from 1 to ${LONGEST_DAYS}, or none.`);
  return days;
}

/** How long an account's sessions are kept, or a dash. */
export function describeRetention({ minimum_days, maximum_days }: AccountRetention): string {
  const bounds = [
    ...(minimum_days === undefined ? [] : [`at least ${minimum_days} days`]),
    ...(maximum_days === undefined ? [] : [`at most ${maximum_days} days`]),
  ];
  return bounds.join(', ') || '-';
}

/** Whether the account is on legal hold, and why. */
export const describeHold = ({ held, reason }: AccountHold): string =>
  held ? `held${reason === undefined ? '' : `: ${reason}`}` : '-';

/** `accounts retention` */
export function addRetentionCommand(accounts: Command, run: WithOperator): void {
  accounts
    .command('retention')
    .description('show or set how many days sessions are kept after their last event')
    .argument('<account_id>')
    .option('--minimum-days <n>', 'sessions can not be erased earlier; none: no minimum', parseDays)
    .option(
      '--maximum-days <n>',
      'the service erases sessions after this; none: no maximum',
      parseDays,
    )
    .action(
      (account_id: string, options: { minimumDays?: number | null; maximumDays?: number | null }) =>
        run(async ({ operator, output }) => {
          const { minimumDays: minimum_days, maximumDays: maximum_days } = options;
          const changes = {
            ...(minimum_days !== undefined && { minimum_days }),
            ...(maximum_days !== undefined && { maximum_days }),
          };
          const actor = { account_id, key_id: 'operator', request_id: 'cli' };
          if (Object.keys(changes).length > 0) await setRetention(operator, actor, changes);
          const { retention } = await requireAccount(await operator.readModels(), account_id);
          output.show({ account_id, retention }, describeRetention(retention));
        }),
    );
}

/** `accounts hold` */
export function addHoldCommand(accounts: Command, run: WithOperator): void {
  accounts
    .command('hold')
    .description('begin or end a legal hold, which prevents all erasures in the account')
    .argument('<account_id>')
    .addArgument(new Argument('<state>', 'whether the hold begins or ends').choices(['on', 'off']))
    .option(
      '--reason <text>',
      'why; recorded in the log for good, so no personal data',
      parseShortReason,
    )
    .action((account_id: string, state: string, options: { reason?: string }) =>
      run(async ({ operator, output }) => {
        const isHeld = state === 'on';
        if (isHeld && options.reason === undefined)
          throw usageError('A hold needs a reason: --reason <text>.');
        const actor = { account_id, key_id: 'operator', request_id: 'cli' };
        await setHold(operator, actor, { held: isHeld, ...options });
        const { hold } = await requireAccount(await operator.readModels(), account_id);
        output.show({ account_id, hold }, describeHold(hold));
      }),
    );
}
