import { addAbortListener } from 'node:events';

/**
 * What `work` comes to, or the signal's reason as soon as that aborts: for work that does not look
 * at the signal itself. It goes on then, and nobody waits for it.
 */
export function abortable<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const listening = addAbortListener(signal, () => reject(signal.reason as Error));
    work.then(resolve, reject).finally(() => listening[Symbol.dispose]());
  });
}
