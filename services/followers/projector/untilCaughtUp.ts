import { addAbortListener } from 'node:events';
import type { ProgressSource } from '../../../shared/projections/progress.ts';

/**
 * Resolves once the projection has applied everything that there was when it was asked. Errors: the
 * signal's reason.
 */
export async function untilCaughtUp(progress: ProgressSource, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  using listening = new DisposableStack();
  listening.use(addAbortListener(signal, () => reject(signal.reason as Error)));
  listening.defer(progress.subscribe(({ caughtUp }) => caughtUp && resolve()));
  await promise;
}
