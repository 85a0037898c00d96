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

/**
 * `accounts open`, `accounts list`, `accounts limits`, `accounts retention`, `accounts hold`; returns
 * `accounts` for further ones.
 */
export function addAccountCommands(program: Command, run: WithOperator): Command {
  const accounts = program
    .command('accounts')
    .description('open and list accounts, limit them, say how long they are kept');

  accounts
    .command('open')
    .description('open an account and print its id; begins a log where there is none yet')
    .argument('<name>', 'for people')
    .action((name: string) =>
      run(async ({ operator, output }) => {
        const account_id = operator.ids.typeId('acct');
        await openAccount(operator, { account_id, key_id: 'operator', request_id: 'cli' }, name);
        output.show({ account_id, name }, account_id);
      }, 'new_too'),
    );

  accounts
    .command('list')
    .description('list all accounts')
    .action(() =>
      run(async ({ operator, output }) => {
        const rows = await (await operator.readModels()).listAccounts();
        const listed = rows.map(({ revision: _revision, ...shown }) => shown);
        output.table(listed, {
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
