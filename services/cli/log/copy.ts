import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Environment } from '../../../shared/lib/config/config.ts';
import { copyEvents } from '../../../shared/eventlog/copyEvents.ts';
import type { EventStore, Position } from '../../../shared/ports/eventStore.ts';
import { openNamedStore, requireLogFolder, requireNonEmptyLog } from '../../compose/eventStore.ts';
import { isCluster } from '../../compose/logLocation.ts';
import type { TerminalContext, WithTerminal } from '../context.ts';
import { EXIT } from '../exitCodes.ts';
import { usageError } from '../failure.ts';
import { parsePositionOption, requirePosition } from '../positions.ts';
import { formatRate } from '../progressLine.ts';

const VARIABLE = /^env:(.*)$/;
/** No data folder is named so, but a store that is not spoken with is: kurrentdb://… */
const SCHEME = /^[a-z][\w+.-]*:\/\//i;

/**
 * The store that an argument names: a data folder, a connection string, or one in a variable of the
 * environment (`env:NAME`). A connection string with a password is taken from there alone, because
 * everybody on the machine can read the arguments of a process.
 * Errors: a usage error, without the password.
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

/** Copies what comes after a position; exit code 130 when it was interrupted. */
async function copyAll(
  { output, progress, signal, exitWith }: TerminalContext,
  { from, to }: { from: EventStore; to: EventStore },
  after: Position | undefined,
): Promise<void> {
  const began = performance.now();
  let done = { events: 0, position: after };
  const complete = await copyEvents({
    from,
    to,
    after,
    signal,
    onProgress: (state) => {
      done = state;
      progress.update(() => `${state.events} events copied, ${formatRate(state.events, began)}`);
    },
  });
  progress.end(`${done.events} events copied`);
  output.show(
    { complete, events: done.events, position: done.position ?? null },
    complete
      ? 'The copy is complete; every event fits its hash chain.'
      : `Interrupted. Go on with the same command${done.position === undefined ? '' : ` and --after ${done.position}`}.`,
  );
  if (!complete) exitWith(EXIT.interrupted);
}

/** The target is opened, and made, once there is something to copy. */
async function copy(terminal: TerminalContext, options: CopyOptions): Promise<void> {
  const [source, target] = [
    resolveStoreName(options.from, 'from', terminal.env),
    resolveStoreName(options.to, 'to', terminal.env),
  ];
  if (source === target || (!isCluster(source) && resolve(source) === resolve(target)))
    throw usageError('--from and --to name the same store: a copy of it is another one.');
  const logger = terminal.logger('warn');
  await using opened = new AsyncDisposableStack();
  const open = async (name: string): Promise<EventStore> =>
    opened.adopt(await openNamedStore(name, logger), (store) => store.close());
  if (!isCluster(source)) requireLogFolder(source, NOTHING);
  const from = await open(source);
  await requireNonEmptyLog(from, source, NOTHING);
  await requirePosition(from, options.after, terminal.signal);
  terminal.signal.throwIfAborted();
  await copyAll(terminal, { from, to: await open(target) }, options.after);
}

/** `events copy`, beside the other commands of `events` */
export function addCopyCommand(events: Command, run: WithTerminal): void {
  events
    .command('copy')
    .description(
      'copy a log into another store, verifying its hash chains; what is there already is not written again',
    )
    .requiredOption(
      '--from <store>',
      'a data folder, a connection string esdb://…, or env:NAME for the variable that holds one (needed where it has a password)',
    )
    .requiredOption('--to <store>', 'the same; a folder is made where it is not there')
    .option('--after <position>', 'begin after this position of the source', parsePositionOption)
    .action((options: CopyOptions) => run((terminal) => copy(terminal, options)));
}
