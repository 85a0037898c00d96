import { once } from 'node:events';
import { flushCompileCache } from 'node:module';
import { applyThreadHeapLimits } from '../shared/lib/concurrency/workerClient.ts';
import { parseConfig } from '../shared/lib/config/config.ts';
import { createLogger } from '../shared/lib/logger.ts';
import { collectWhenIdle } from '../shared/lib/memory/collectWhenIdle.ts';
import { startService } from './compose/service.ts';
import { formatBanner } from './process/banner.ts';
import { answerWithoutStart } from './process/help.ts';
import { limitStop, stopOnDefect, reportFailure } from './process/processExit.ts';
import { chooseServices } from './process/serviceNames.ts';
import { onStopSignal } from './process/stopSignals.ts';
import { warnOfOptions } from './process/warnOfOptions.ts';

async function serveUntil(stop: AbortController, args: readonly string[]): Promise<void> {
  const { signal } = stop;
  // Node.js holds the compiled code of each module until it is flushed. The start reuses its memory.
  flushCompileCache();
  applyThreadHeapLimits();
  const config = parseConfig(process.env);
  const logger = createLogger(config.LOG_LEVEL);
  process.stdout.on('error', ({ message }) =>
    logger.warn(
      { reason: message },
      'nothing can be written to standard output: a first API key may be lost; issue another: npm run cli -- keys issue',
    ),
  );
  stopOnDefect({ stop, logger });
  limitStop({ stop, logger, graceMs: config.DRAIN_MS + config.SHUTDOWN_GRACE_MS });
  warnOfOptions(config, process.env, logger);
  const services = chooseServices(args, config);
  const service = await startService(config, logger, { services, signal });
  // Includes the modules that the start imported. Cached compiled code makes the next start faster
  // and smaller, even if this process is killed. Does nothing if no cache is configured.
  flushCompileCache();
  collectWhenIdle();
  const isOperatorsKey = config.BOOTSTRAP_API_KEY !== undefined;
  const isTerminal = process.stdout.isTTY;
  process.stdout.write(formatBanner(service, { isOperatorsKey, isTerminal, now: new Date() }));
  if (!signal.aborted) await once(signal, 'abort');
  await service.stop();
}

// The server. Exit code 0 after a signal, 1 if it could not start, 70 after a defect or a stop that
// took too long.
const args = process.argv.slice(2);
// A closed pipe or a full disk ends neither the service nor its help.
for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined);
const answer = answerWithoutStart(args);
if (answer === undefined) {
  const stop = new AbortController();
  onStopSignal((name) => stop.abort(new Error(`stopped by ${name}`)));
  try {
    await serveUntil(stop, args);
  } catch (error) {
    if (error !== stop.signal.reason) reportFailure(error);
  }
} else process.stdout.write(answer);
