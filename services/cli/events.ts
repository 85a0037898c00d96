import { InvalidArgumentError, type Command } from 'commander';
import { decodeEvent } from '../../shared/eventlog/codec.ts';
import type { Position } from '../../shared/ports/eventStore.ts';
import { verifyChains } from '../../shared/queries/verifyChains.ts';
import type { CliContext, WithOperator } from './context.ts';

const BATCH_SIZE = 500;

export function parsePosition(text: string): Position {
  if (!/^[\w/:.-]{1,100}$/.test(text))
    throw new InvalidArgumentError('Take a position as another command printed it.');
  return text as Position;
}

/** Prints the events after a position, a JSON line each, and then whatever comes. */
async function tail(
  { operator, print, signal }: CliContext,
  { after, follow }: { after?: Position; follow: boolean },
): Promise<void> {
  for await (const batch of operator.store.subscribe({ after, batchSize: BATCH_SIZE, signal })) {
    for (const stored of batch.events) print(JSON.stringify(decodeEvent(stored)));
    if (batch.caughtUp && !follow) return;
  }
}

/**
 * Verifies every hash chain. The exit code is 1 when an event does not fit, 130 when it was
 * interrupted.
 */
async function verify(
  { operator, print, progress, signal }: CliContext,
  after: Position | undefined,
): Promise<void> {
  const began = performance.now();
  let done = { events: 0, position: after };
  const misfit = await verifyChains({
    store: operator.store,
    after,
    signal,
    onProgress: (state) => {
      done = state;
      progress.update(
        () =>
          `${state.events} events verified, ${Math.round((1_000 * state.events) / (performance.now() - began))}/s`,
      );
    },
  });
  if (misfit) {
    progress.end(`${done.events} events verified`);
    print(
      `The event ${misfit.id} (${misfit.stream} revision ${misfit.revision}, position ${misfit.position}) does not fit: ${misfit.reason}.`,
    );
    process.exitCode = 1;
  } else if (signal.aborted) {
    progress.end(
      `Interrupted after ${done.events} events. Go on with: audit verify${done.position === undefined ? '' : ` --after ${done.position}`}`,
    );
    process.exitCode = 130;
  } else {
    progress.end(`${done.events} events verified`);
    print('Every event fits its hash chain.');
  }
}

/** `events tail`, `audit verify`. Returns `events`, for more commands. */
export function addEventCommands(program: Command, run: WithOperator): Command {
  const after = ['--after <position>', 'begin after this position', parsePosition] as const;

  const events = program.command('events').description('look at the log, and copy it');
  events
    .command('tail')
    .description('print events as JSON lines, and follow the log until Ctrl-C')
    .option(...after)
    .option('--no-follow', 'end when the end of the log is reached')
    .action((options: { after?: Position; follow: boolean }) =>
      run((context) => tail(context, options)),
    );

  program
    .command('audit')
    .description('check the log')
    .command('verify')
    .description('recompute every hash chain and name the first event that does not fit')
    .option(...after)
    .action((options: { after?: Position }) => run((context) => verify(context, options.after)));

  return events;
}
