import { addAbortListener } from 'node:events';

/**
 * Resolves with the result of `work`, or rejects with the abort reason as soon as the signal
 * aborts. For work that can't observe a signal: it continues in the background.
 */
export function abortable<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const listening = addAbortListener(signal, () => reject(signal.reason as Error));
    work.then(resolve, reject).finally(() => listening[Symbol.dispose]());
  });
}
