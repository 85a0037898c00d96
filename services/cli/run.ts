import { parseConfig, type Config } from '../../shared/lib/config/config.ts';
import { isLogUnavailable } from '../../shared/lib/errors/turnlogError.ts';
import { createLogger } from '../../shared/lib/logger.ts';
import { requireEvents, requireLogIn } from '../compose/existing.ts';
import { openOperator, type Operator } from '../compose/operator.ts';
import type { LogNeeded, TerminalContext, WithOperator, WithTerminal } from './context.ts';
import { EXIT } from './exitCodes.ts';
import { interrupted, reportCliFailure } from './failure.ts';
import { createOutput } from './output.ts';
import { progressLine } from './progressLine.ts';

/** How long what a signal ends may take to close, which a store that hangs would hold up. */
const CLOSE_LIMIT_MS = 3_000;

const NOBODYS = { update: () => undefined, end: () => undefined };

const tell = (text: string): void => void process.stderr.write(text);

function openTerminal(json: boolean): TerminalContext {
  const stop = new AbortController();
  function interrupt(): void {
    stop.abort(interrupted());
    setTimeout(() => {
      if (process.exitCode !== EXIT.interrupted) reportCliFailure(stop.signal.reason, json);
      process.exit();
    }, CLOSE_LIMIT_MS).unref();
  }
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, interrupt);
  return {
    output: createOutput(json, (text) => process.stdout.write(text)),
    notice: createOutput(json, tell).show,
    progress: json ? NOBODYS : progressLine(tell, process.stderr.isTTY),
    signal: stop.signal,
  };
}

const LOOK =
  'Set DATA_DIR to the data folder of the service, or start the service once to make it.';
const LOOK_THERE =
  'Set EVENTSTOREDB_URL to the store of the service, or start the service once to begin its log.';

function requireFolder({ DATA_DIR, EVENTSTOREDB_URL }: Config, needed: LogNeeded): void {
  if (EVENTSTOREDB_URL === undefined && needed !== 'new_too') requireLogIn(DATA_DIR, LOOK);
}

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });

/** A store that is away is left to the command, which waits for it or says so. */
async function requireEventsIn(cluster: string, { store }: Operator): Promise<void> {
  try {
    await requireEvents(store, cluster, LOOK_THERE);
  } catch (error) {
    if (!isLogUnavailable(error)) throw error;
  }
}

/** How commands are run: one each, with its results as JSON or for people. */
export function createRunners(json: boolean): {
  withTerminal: WithTerminal;
  withOperator: WithOperator;
} {
  const withTerminal: WithTerminal = (command) => command(openTerminal(json));
  const withOperator: WithOperator = (command, needed = 'existing') =>
    withTerminal(async (terminal) => {
      const { signal } = terminal;
      const config = parseConfig(process.env);
      requireFolder(config, needed);
      await using opened = new AsyncDisposableStack();
      const logger = createLogger(config.LOG_LEVEL);
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
