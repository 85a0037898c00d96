import { parseConfig } from '../shared/config.ts';
import { isTurnlogError } from '../shared/errors.ts';
import { createLogger } from '../shared/logger.ts';
import { banner } from './banner.ts';
import { startService } from './start.ts';

/** Aborts at the first SIGTERM or SIGINT; a second one ends the process at once, as a person at a keyboard expects. */
function onStopSignal(): AbortSignal {
  const stop = new AbortController();
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => stop.abort(new Error(`stopped by ${name}`)));
  return stop.signal;
}

async function main(stopped: AbortSignal): Promise<void> {
  const config = parseConfig(process.env);
  const service = await startService(config, createLogger(config.LOG_LEVEL), stopped);
  process.stdout.write(banner(service, config.BOOTSTRAP_API_KEY !== undefined));
  if (!stopped.aborted) await new Promise((resolve) => stopped.addEventListener('abort', resolve));
  await service.stop();
}

const stopped = onStopSignal();
try {
  await main(stopped);
} catch (error) {
  if (error === stopped.reason) process.exit(0);
  // What an operator can mend is a sentence; anything else is a defect and comes with its stack.
  process.stderr.write(`${isTurnlogError(error) ? error.message : String(error instanceof Error ? error.stack : error)}\n`);
  process.exitCode = 1;
}
