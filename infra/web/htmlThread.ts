import { Worker } from 'node:worker_threads';
import type { TimedAnswer } from '../../shared/lib/time/processorTime.ts';
import { LIMITS } from '../../shared/limits.ts';
import { webFailedError } from './failures.ts';

/** A page, and where it came from. */
export interface Html {
  text: string;
  url: string;
}

/** Enough for a page of the largest size that is one table of short numbers, with 190,000 nodes. */
const HEAP_MB = 64;
/** Heap for young objects. The default takes several times as much. */
const YOUNG_MB = 4;

/**
 * Converts a page to text in a new worker thread, so that a hostile page can't block the event loop,
 * exhaust the heap or end the process. Throws `web_failed` where it takes too much time or memory.
 */
export function textOfHtml(html: Html, signal: AbortSignal): Promise<TimedAnswer<string>> {
  const { promise, resolve, reject } = Promise.withResolvers<TimedAnswer<string>>();
  const worker = new Worker(new URL('./htmlWorker.ts', import.meta.url), {
    name: 'html',
    workerData: html,
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: YOUNG_MB },
    stdout: true,
    stderr: true,
  });
  const tooMuch = (): void =>
    reject(webFailedError('answers with a page that can’t be read as text'));
  const leave = (): void => reject(signal.reason as Error);
  const timer = setTimeout(tooMuch, LIMITS.web.htmlMs);
  signal.addEventListener('abort', leave, { once: true });
  worker.on('message', resolve);
  worker.on('error', tooMuch);
  worker.on('exit', tooMuch);
  return promise.finally(() => {
    clearTimeout(timer);
    signal.removeEventListener('abort', leave);
    void worker.terminate();
  });
}
