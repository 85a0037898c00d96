import { parseConfig, type Config } from '../../shared/lib/config/config.ts';
import { isLogUnavailable } from '../../shared/lib/errors/turnlogError.ts';
import { createLogger } from '../../shared/lib/logger.ts';
import { requireNonEmptyLog, requireLogFolder } from '../compose/eventStore.ts';
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

const LOOK =
  'Set DATA_DIR to the data folder of the service, or start the service once to make it.';
const LOOK_THERE =
  'Set EVENTSTOREDB_URL to the store of the service, or start the service once to begin its log.';

function requireFolder({ DATA_DIR, EVENTSTOREDB_URL }: Config, needed: LogRequirement): void {
  if (EVENTSTOREDB_URL === undefined && needed !== 'new_too') requireLogFolder(DATA_DIR, LOOK);
}

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });

/** A store that is away is left to the command, which waits for it or says so. */
async function requireEventsIn(cluster: string, { store }: Operator): Promise<void> {
  try {
    await requireNonEmptyLog(store, cluster, LOOK_THERE);
  } catch (error) {
    if (!isLogUnavailable(error)) throw error;
  }
}

/** How commands are run: one each, with its results as JSON or for people. */
export function createRunners(
  json: boolean,
  target: CommandProcess,
  signal: AbortSignal,
): { withTerminal: WithTerminal; withOperator: WithOperator } {
  const withTerminal: WithTerminal = (command) => command(openTerminal(json, target, signal));
  const withOperator: WithOperator = (command, needed = 'existing') =>
    withTerminal(async (terminal) => {
      const config = parseConfig(target.env);
      requireFolder(config, needed);
      await using opened = new AsyncDisposableStack();
      const logger = terminal.logger(config.LOG_LEVEL);
      const operator = opened.adopt(await openOperator(config, logger, signal), ({ close }) =>
        close(),
      );
      const { EVENTSTOREDB_URL: cluster } = config;
      if (cluster !== undefined && needed === 'existing')
        await Promise.race([requireEventsIn(cluster, operator), untilAborted(signal)]);
      signal.throwIfAborted();
      await command({ operator, ...terminal });
    });
  return { withTerminal, withOperator };
}
