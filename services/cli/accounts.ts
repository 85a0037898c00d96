import type { Command } from 'commander';
import { openAccount } from '../../shared/commands/accounts.ts';
import { addLimitsCommand, describeLimits } from './accountLimits.ts';
import type { WithOperator } from './context.ts';

/** `accounts open`, `accounts list`, `accounts limits` */
export function addAccountCommands(program: Command, run: WithOperator): void {
  const accounts = program
    .command('accounts')
    .description('open and list accounts, and limit them');

  accounts
    .command('open')
    .description('open an account and print its id')
    .argument('<name>', 'for people')
    .action((name: string) =>
      run(async ({ operator, print }) => {
        const account_id = operator.ids.typeId('acct');
        await openAccount(operator, { account_id, key_id: 'operator', request_id: 'cli' }, name);
        print(account_id);
      }),
    );

  accounts
    .command('list')
    .description('list all accounts')
    .action(() =>
      run(async ({ operator, print }) => {
        const rows = await (await operator.readModels()).listAccounts();
        for (const { account_id, name, opened_at, limits } of rows)
          print([account_id, opened_at, ...describeLimits(limits), name].join('  '));
      }),
    );

  addLimitsCommand(accounts, run);
}
