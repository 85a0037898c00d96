import type { Command } from 'commander';
import { openAccount } from '../../shared/commands/accounts.ts';
import type { WithOperator } from './context.ts';

/** `accounts open`, `accounts list` */
export function addAccountCommands(program: Command, run: WithOperator): void {
  const accounts = program.command('accounts').description('open and list accounts');

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
        const listed = rows.map(({ account_id, name, opened_at }) => ({
          account_id,
          name,
          opened_at,
        }));
        output.table(listed, {
          ACCOUNT: ({ account_id }) => account_id,
          OPENED: ({ opened_at }) => opened_at,
          NAME: ({ name }) => name,
        });
      }),
    );
}
