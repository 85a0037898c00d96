import type { Command } from 'commander';
import { parseConfig } from '../../shared/lib/config/config.ts';
import { migrateDatabase } from '../compose/postgres.ts';
import type { WithTerminal } from './context.ts';

/** `database migrate` */
export function addDatabaseCommands(program: Command, run: WithTerminal): void {
  program
    .command('database')
    .description('work on the PostgreSQL database of the read models')
    .command('migrate')
    .description(
      'bring the database up to date, with the role that owns it; services then need no right to create anything',
    )
    .option(
      '--grant <role...>',
      'let services work in it as this role; those that were named before go on',
    )
    .action(({ grant = [] }: { grant?: string[] }) =>
      run(async ({ env, output }) => {
        const roles = await migrateDatabase(parseConfig(env), grant);
        const others = roles.length > 0 ? `, besides its owner: ${roles.join(', ')}` : '';
        output.show({ roles }, `The database is up to date. Services may work in it${others}.`);
      }),
    );
}
