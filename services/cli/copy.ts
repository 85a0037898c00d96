import type { Command } from 'commander';
import { copyEvents } from '../../shared/commands/copyEvents.ts';
import { createLogger } from '../../shared/logger.ts';
import type { EventStore, Position } from '../../shared/ports/eventStore.ts';
import type { CliContext } from './context.ts';
import { parsePosition } from './events.ts';
import { rate } from './progressLine.ts';
import { openNamedStore } from '../compose/eventStore.ts';

interface CopyOptions {
  from: string;
  to: string;
  after?: Position;
}

async function withStores(
  options: CopyOptions,
  work: (from: EventStore, to: EventStore) => Promise<void>,
): Promise<void> {
  const logger = createLogger('warn');
  await using opened = new AsyncDisposableStack();
  const open = async (name: string): Promise<EventStore> =>
    opened.adopt(await openNamedStore(name, logger), (store) => store.close());
  await work(await open(options.from), await open(options.to));
}

/** Exit code 130 when it was interrupted. */
const copy = (
  options: CopyOptions,
  { print, progress, signal }: Omit<CliContext, 'operator'>,
): Promise<void> =>
  withStores(options, async (from, to) => {
    const began = performance.now();
    let done = { events: 0, position: options.after };
    const complete = await copyEvents({
      from,
      to,
      after: options.after,
      signal,
      onProgress: (state) => {
        done = state;
        progress.update(() => `${state.events} events copied, ${rate(state.events, began)}`);
      },
    });
    progress.end(`${done.events} events copied`);
    print(
      complete
        ? 'The copy is complete; every event fits its hash chain.'
        : `Interrupted. Go on with the same command${done.position === undefined ? '' : ` and --after ${done.position}`}.`,
    );
    if (!complete) process.exitCode = 130;
  });

/** `events copy`, beside the other commands of `events` */
export function addCopyCommand(
  events: Command,
  terminal: () => Omit<CliContext, 'operator'>,
): void {
  events
    .command('copy')
    .description(
      'copy a log into another store, verifying its hash chains; what is there already is not written again',
    )
    .requiredOption('--from <store>', 'a data folder, or a connection string esdb://…')
    .requiredOption('--to <store>', 'the same')
    .option('--after <position>', 'begin after this position of the source', parsePosition)
    .action((options: CopyOptions) => copy(options, terminal()));
}
