import type { Command } from 'commander';
import { parseConfig } from '../../shared/lib/config/config.ts';
import { migrateDatabase } from '../compose/replica/postgres.ts';
import type { WithOperator, WithTerminal } from './context.ts';
import { EXIT } from './exitCodes.ts';

/** `projections rebuild` */
export function addProjectionCommands(program: Command, run: WithOperator): void {
  program
    .command('projections')
    .description('work on the read models')
    .command('rebuild')
    .description(
      'rebuild the read models from the log, with or without a running server; an interrupted rebuild continues next time',
    )
    .action(() =>
      run(async ({ operator, output, progress, signal, exitWith }) => {
        let last = '';
        let done = { events: 0, parked_streams: 0 };
        const complete = await operator.rebuild(
          signal,
          ({ events, percent, events_per_second, parked }) => {
            done = { events, parked_streams: parked };
            last = `${percent.toFixed(1)} %: ${events} events, ${events_per_second}/s${parked > 0 ? `, ${parked} streams parked` : ''}`;
            progress.update(() => last);
          },
        );
        progress.end(last);
        output.show(
          { complete, ...done },
          complete
            ? 'The read models are rebuilt; a running server goes over to them within a second.'
            : 'Interrupted; the next rebuild goes on from here.',
        );
        if (!complete) exitWith(EXIT.interrupted);
      }),
    );
}

/** `database migrate` */
export function addDatabaseCommands(program: Command, run: WithTerminal): void {
  program
    .command('database')
    .description('work on the PostgreSQL database of the read models')
    .command('migrate')
    .description(
      'migrate the database with the role that owns it; services then need no rights to create objects',
    )
    .option(
      '--grant <role...>',
      'grant services access as this role; roles granted earlier keep theirs',
    )
    .action(({ grant = [] }: { grant?: string[] }) =>
      run(async ({ env, output }) => {
        const roles = await migrateDatabase(parseConfig(env), grant);
        const others = roles.length > 0 ? `, besides its owner: ${roles.join(', ')}` : '';
        output.show({ roles }, `The database is up to date. Services may work in it${others}.`);
      }),
    );
}
