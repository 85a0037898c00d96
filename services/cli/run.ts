import { parseConfig, type Config } from '../../shared/lib/config/config.ts';
import { isLogUnavailable } from '../../shared/lib/errors/turnlogError.ts';
import { createLogger } from '../../shared/lib/logger.ts';
import { requireNonEmptyLog, requireLogFolder } from '../compose/eventStore.ts';
import { locateStorage } from '../compose/logLocation.ts';
import { requireFinishedRestore } from '../compose/operator/backup/unfinishedRestore.ts';
import { openOperator, type Operator } from '../compose/operator/operator.ts';
import type {
  CommandProcess,
  LogRequirement,
  TerminalContext,
  WithOperator,
  WithTerminal,
} from './context.ts';
import { createOutput } from './output.ts';
import { createProgressLine } from './progressLine.ts';

const NO_PROGRESS = { update: () => undefined, end: () => undefined };

function openTerminal(json: boolean, target: CommandProcess, signal: AbortSignal): TerminalContext {
  const { env, stdout, stderr } = target;
  const writeError = (text: string): void => void stderr.write(text);
  return {
    env,
    output: createOutput(json, (text) => void stdout.write(text)),
    notice: createOutput(json, writeError).show,
    progress: json ? NO_PROGRESS : createProgressLine(writeError, stderr.isTTY === true),
    signal,
    logger: (level) => createLogger(level, stderr),
    exitWith: (code) => void (target.exitCode = code),
  };
}

const FIND_FOLDER =
  'Set DATA_DIR to the data folder of the service, or start the service once to make it.';
const FIND_CLUSTER =
  'Set EVENTSTOREDB_URL to the store of the service, or start the service once to begin its log.';

function requireFolder(config: Config, requirement: LogRequirement): void {
  const { DATA_DIR, EVENTSTOREDB_URL } = config;
  requireFinishedRestore(locateStorage(config));
  if (EVENTSTOREDB_URL === undefined && requirement !== 'may_be_new')
    requireLogFolder(DATA_DIR, FIND_FOLDER);
}

const waitUntilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });

/** Ignores an unavailable store: the command waits for it, or reports it. */
async function requireEventsIn(cluster: string, { store }: Operator): Promise<void> {
  try {
    await requireNonEmptyLog(store, cluster, FIND_CLUSTER);
  } catch (error) {
    if (!isLogUnavailable(error)) throw error;
  }
}

/** Creates the functions that run a command, with its results as JSON or as text. */
export function createRunners(
  json: boolean,
  target: CommandProcess,
  signal: AbortSignal,
): { withTerminal: WithTerminal; withOperator: WithOperator } {
  const withTerminal: WithTerminal = (command) => command(openTerminal(json, target, signal));
  const withOperator: WithOperator = (command, requirement = 'existing') =>
    withTerminal(async (terminal) => {
      const config = parseConfig(target.env);
      requireFolder(config, requirement);
      await using opened = new AsyncDisposableStack();
      const logger = terminal.logger(config.LOG_LEVEL);
      const operator = opened.adopt(await openOperator(config, logger, signal), ({ close }) =>
        close(),
      );
      const { EVENTSTOREDB_URL: cluster } = config;
      if (cluster !== undefined && requirement === 'existing')
        await Promise.race([requireEventsIn(cluster, operator), waitUntilAborted(signal)]);
      signal.throwIfAborted();
      await command({ operator, ...terminal });
    });
  return { withTerminal, withOperator };
}
