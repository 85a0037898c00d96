import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Environment } from '../../../shared/lib/config/config.ts';
import { copyEvents } from '../../../shared/eventlog/copyEvents.ts';
import type { EventStore, Position } from '../../../shared/ports/eventStore.ts';
import { openNamedStore, requireLogFolder, requireNonEmptyLog } from '../../compose/eventStore.ts';
import { isCluster } from '../../compose/logLocation.ts';
import { requireUsableFolder } from '../../compose/operator/backup/unfinishedRestore.ts';
import type { TerminalContext, WithTerminal } from '../context.ts';
import { EXIT } from '../exitCodes.ts';
import { usageError } from '../failure.ts';
import { parsePositionOption, requirePositionInLog } from '../positions.ts';
import { formatRate } from '../progressLine.ts';

const VARIABLE = /^env:(.*)$/;
/** A URL of an unsupported store, such as kurrentdb://…, is not the name of a data folder. */
const SCHEME = /^[a-z][\w+.-]*:\/\//i;

/**
 * The store that an argument names: a data folder, a connection string, or the environment variable
 * that holds one (`env:NAME`). A connection string with a password is only accepted from a variable,
 * because all users of the machine can read the arguments of a process.
 */
export function resolveStoreName(text: string, option: 'from' | 'to', env: Environment): string {
  const [, variable] = VARIABLE.exec(text) ?? [];
  const named = variable === undefined ? text : env[variable];
  if (!named) throw usageError(`--${option} ${text} names no store: it is empty, or not set.`);
  if (!isCluster(named) && SCHEME.test(named))
    throw usageError(
      `--${option} names neither a data folder nor a cluster: a connection string begins with esdb:// or esdb+discover://.`,
    );
  if (variable === undefined && isCluster(named) && named.includes('@'))
    throw usageError(
      `--${option} must not hold a user and password, which everybody on this machine can read in the list of processes: set a variable to the connection string, and name it: --${option} env:${option.toUpperCase()}_URL`,
    );
  return named;
}

interface CopyOptions {
  from: string;
  to: string;
  after?: Position;
}

const NOTHING = 'Nothing was copied: name the store to copy from with --from.';

/** Copies the events after a position; the exit code is 130 if it is interrupted. */
async function copyAll(
  { output, progress, signal, exitWith }: TerminalContext,
  { from, to }: { from: EventStore; to: EventStore },
  after: Position | undefined,
): Promise<void> {
  const began = performance.now();
  let copied = { events: 0, position: after };
  const complete = await copyEvents({
    from,
    to,
    after,
    signal,
    onProgress: (state) => {
      copied = state;
      progress.update(() => `${state.events} events copied, ${formatRate(state.events, began)}`);
    },
  });
  progress.end(`${copied.events} events copied`);
  output.show(
    { complete, events: copied.events, position: copied.position ?? null },
    complete
      ? 'The copy is complete; every event fits its hash chain.'
      : `Interrupted. Go on with the same command${copied.position === undefined ? '' : ` and --after ${copied.position}`}.`,
  );
  if (!complete) exitWith(EXIT.interrupted);
}

/** The target is opened, and created, only once there is something to copy. */
async function copy(terminal: TerminalContext, options: CopyOptions): Promise<void> {
  const [source, target] = [
    resolveStoreName(options.from, 'from', terminal.env),
    resolveStoreName(options.to, 'to', terminal.env),
  ];
  if (source === target || (!isCluster(source) && resolve(source) === resolve(target)))
    throw usageError('--from and --to name the same store: a copy of it is another one.');
  for (const name of [source, target]) if (!isCluster(name)) requireUsableFolder(resolve(name));
  const logger = terminal.logger('warn');
  await using opened = new AsyncDisposableStack();
  const open = async (name: string, option: '--from' | '--to'): Promise<EventStore> =>
    opened.adopt(await openNamedStore(name, logger, option), (store) => store.close());
  if (!isCluster(source)) requireLogFolder(source, NOTHING);
  const from = await open(source, '--from');
  await requireNonEmptyLog(from, source, NOTHING);
  await requirePositionInLog(from, options.after, terminal.signal);
  terminal.signal.throwIfAborted();
  await copyAll(terminal, { from, to: await open(target, '--to') }, options.after);
}

/** `events copy` */
export function addCopyCommand(events: Command, run: WithTerminal): void {
  events
    .command('copy')
    .description(
      'copy a log into another store, verifying its hash chains; events already there are skipped',
    )
    .requiredOption(
      '--from <store>',
      'a data folder, a connection string esdb://…, or env:NAME for the variable that holds one (required if it has a password)',
    )
    .requiredOption('--to <store>', 'the same; a missing folder is created')
    .option('--after <position>', 'begin after this position of the source', parsePositionOption)
    .action((options: CopyOptions) => run((terminal) => copy(terminal, options)));
}
