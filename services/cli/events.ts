import type { Command } from 'commander';
import { discloseEvents } from '../../shared/eventlog/openTexts.ts';
import type { Position } from '../../shared/ports/eventStore.ts';
import type { CliContext, WithOperator } from './context.ts';
import { toPosition } from './positions.ts';

const BATCH_SIZE = 500;

/** Prints the events after a position, a JSON line each, and then whatever comes. */
async function tail(
  { operator, output, signal }: CliContext,
  { after, follow }: { after?: Position; follow: boolean },
): Promise<void> {
  for await (const batch of operator.store.subscribe({ after, batchSize: BATCH_SIZE, signal })) {
    const events = await discloseEvents(operator.store.keys, batch.events);
    for (const event of events) output.stream(event);
    if (batch.caughtUp && !follow) return;
  }
}

/** `events tail`. Returns `events`, for more commands. */
export function addEventCommands(program: Command, run: WithOperator): Command {
  const events = program.command('events').description('look at the log, and copy it');
  events
    .command('tail')
    .description('print events as JSON lines, and follow the log until Ctrl-C')
    .option('--after <position>', 'begin after this position', toPosition)
    .option('--no-follow', 'end when the end of the log is reached')
    .action((options: { after?: Position; follow: boolean }) =>
      run((context) => tail(context, options)),
    );

  return events;
}
