import type { Command } from 'commander';
import { openAccount } from '../../../shared/accounts/commands.ts';
import { addLimitsCommand, describeLimits } from './limits.ts';
import {
  addHoldCommand,
  addRetentionCommand,
  describeHold,
  describeRetention,
} from './retention.ts';
import type { WithOperator } from '../context.ts';

/** `accounts open`, `list`, `limits`, `retention` and `hold`; returns `accounts` for further commands. */
export function addAccountCommands(program: Command, run: WithOperator): Command {
  const accounts = program
    .command('accounts')
    .description('open and list accounts, and set their limits and retention');

  accounts
    .command('open')
    .description('open an account and print its id; creates the log if there is none')
    .argument('<name>', 'for people')
    .action((name: string) =>
      run(async ({ operator, output }) => {
        const account_id = operator.ids.typeId('acct');
        await openAccount(operator, { account_id, key_id: 'operator', request_id: 'cli' }, name);
        output.show({ account_id, name }, account_id);
      }, 'may_be_new'),
    );

  accounts
    .command('list')
    .description('list all accounts')
    .action(() =>
      run(async ({ operator, output }) => {
        const rows = await (await operator.readModels()).listAccounts();
        const accountRows = rows.map(({ revision: _revision, ...account }) => account);
        output.table(accountRows, {
          ACCOUNT: ({ account_id }) => account_id,
          OPENED: ({ opened_at }) => opened_at,
          LIMITS: ({ limits }) => describeLimits(limits),
          RETENTION: ({ retention }) => describeRetention(retention),
          HOLD: ({ hold }) => describeHold(hold),
          NAME: ({ name }) => name,
        });
      }),
    );

  addLimitsCommand(accounts, run);
  addRetentionCommand(accounts, run);
  addHoldCommand(accounts, run);
  return accounts;
}
