import { flushCompileCache } from 'node:module';
import { endInOrderOnDefect } from './defects.ts';
import { parseConfig } from '../../shared/config.ts';
import { createLogger } from '../../shared/logger.ts';
import { banner } from './banner.ts';
import { reportFailure } from './reportFailure.ts';
import { chooseServices } from './serviceNames.ts';
import { startService } from './start.ts';

/** Aborts at the first SIGTERM or SIGINT; a second one ends the process at once, as a person at a keyboard expects. */
function stopAtSignal(stop: AbortController): void {
  for (const name of ['SIGTERM', 'SIGINT'] as const)
    process.once(name, () => stop.abort(new Error(`stopped by ${name}`)));
}

async function serveUntil(stop: AbortController): Promise<void> {
  const config = parseConfig(process.env);
  const logger = createLogger(config.LOG_LEVEL);
  const stopped = stop.signal;
  endInOrderOnDefect({ stop, logger, graceMs: config.SHUTDOWN_GRACE_MS });
  const service = await startService(config, logger, {
    services: chooseServices(process.argv.slice(2), config),
    signal: stopped,
  });
  // Compiled code makes the next start faster and smaller, also when this process is killed; does nothing where no cache is on.
  flushCompileCache();
  process.stdout.write(banner(service, config.BOOTSTRAP_API_KEY !== undefined));
  if (!stopped.aborted) await new Promise((resolve) => stopped.addEventListener('abort', resolve));
  await service.stop();
}

/** The server, from start to orderly end. The exit code is 0 after a signal, 1 when it could not start, 70 after a defect. */
export async function runServer(): Promise<void> {
  const stop = new AbortController();
  stopAtSignal(stop);
  try {
    await serveUntil(stop);
  } catch (error) {
    if (error !== stop.signal.reason) reportFailure(error);
  }
}
