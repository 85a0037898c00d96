import type { Command } from 'commander';
import { acceptRestored } from '../../../shared/restoredLogs/acceptRestored.ts';
import { readLogIdentity, logIdAt } from '../../../shared/eventlog/identity/logIdentity.ts';
import type { CliContext, WithOperator } from '../context.ts';
import { parseReason } from '../reason.ts';

interface Options {
  replaces: string[];
  reason: string;
}

async function acceptRestoredLog(
  { operator, output }: CliContext,
  options: Options,
): Promise<void> {
  const followed = await operator.followedLog();
  const replaces = followed === undefined ? options.replaces : [followed, ...options.replaces];
  const declared = await acceptRestored(operator, { ...options, replaces });
  output.show(
    declared,
    `The log is ${declared.log_id} from now on.`,
    declared.replaces.length === 0
      ? 'It stands for no other: it was empty.'
      : `It stands for: ${declared.replaces.join(', ')}.`,
    'Read models are built anew from it, and the relay publishes what is missing in Kafka.',
  );
}

async function showLog({ operator, output }: CliContext): Promise<void> {
  const identity = await readLogIdentity(operator.store);
  if (!identity)
    return output.show(
      { log_id: null, ends_at: null, declarations: [] },
      'The log is empty: it has no id yet.',
    );
  const log_id = logIdAt(identity);
  const ends_at = (await operator.store.head()) ?? null;
  output.show(
    { log_id, ends_at, declarations: identity.declarations },
    `log ${log_id}`,
    `ends at ${ends_at ?? '-'}`,
    ...identity.declarations.map(
      ({ id, position, replaces }) =>
        `declared at ${position}: ${id} stands for ${replaces.join(', ')}`,
    ),
  );
}

/** `log show` and `accept-restored` */
export function addLogCommands(program: Command, run: WithOperator): void {
  const log = program.command('log').description('identify the log');
  log
    .command('show')
    .description('print the id of the log and its declarations')
    .action(() => run(showLog));
  log
    .command('accept-restored')
    .description(
      'declare that this log, which its followers refuse, was restored on purpose and is the one to follow; recorded in the log',
    )
    .requiredOption('--reason <text>', 'why, for people', parseReason)
    .option(
      '--replaces <log...>',
      'ids of further logs that this one replaces, as followers report them',
      [] as string[],
    )
    .action((options: Options) =>
      run((context) => acceptRestoredLog(context, options), 'may_be_empty'),
    );
}
