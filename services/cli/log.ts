import type { Command } from 'commander';
import { acceptRestored } from '../../shared/commands/acceptRestored.ts';
import { identityOf, logIdAt } from '../../shared/eventlog/logIdentity.ts';
import type { CliContext, WithOperator } from './context.ts';

interface Options {
  replaces: string[];
  reason: string;
}

async function accept({ operator, print }: CliContext, options: Options): Promise<void> {
  const followed = await operator.followedLog();
  const replaces = followed === undefined ? options.replaces : [followed, ...options.replaces];
  const declared = await acceptRestored(operator, { ...options, replaces });
  print(`The log is ${declared.log_id} from now on.`);
  print(
    declared.replaces.length === 0
      ? 'It stands for no other: it was empty.'
      : `It stands for: ${declared.replaces.join(', ')}.`,
  );
  print('Read models are built anew from it, and the relay publishes what is missing in Kafka.');
}

async function show({ operator, print }: CliContext): Promise<void> {
  const identity = await identityOf(operator.store);
  if (!identity) return print('The log is empty: it has no id yet.');
  print(`log ${logIdAt(identity)}`);
  print(`ends at ${(await operator.store.head()) ?? '-'}`);
  for (const { id, position, replaces } of identity.declarations)
    print(`declared at ${position}: ${id} stands for ${replaces.join(', ')}`);
}

/** `log show`, `log accept-restored` */
export function addLogCommands(program: Command, run: WithOperator): void {
  const log = program.command('log').description('which log it is');
  log
    .command('show')
    .description('print the id of the log, and what was declared of it')
    .action(() => run(show));
  log
    .command('accept-restored')
    .description(
      'declare that this log, which its followers refuse, is the one to follow: it was restored on purpose; recorded in the log',
    )
    .requiredOption('--reason <text>', 'why, for people')
    .option(
      '--replaces <log...>',
      'ids of more logs that this one stands for, as followers name them',
      [] as string[],
    )
    .action((options: Options) => run((context) => accept(context, options)));
}
