import type { Logger } from '../../shared/lib/logger.ts';
import type { EventStore } from '../../shared/ports/eventStore.ts';
import type { Repeated } from './sweep.ts';

const LOOK_MS = 1_000;

/**
 * Tells in the log what trouble a store is in, once, and when it is over: for one that has no voice
 * of its own.
 */
export function watchTrouble(store: Pick<EventStore, 'trouble'>, logger: Logger): Repeated {
  let told: string | undefined;
  const look = (): void => {
    const trouble = store.trouble();
    if (trouble === told) return;
    told = trouble;
    if (trouble === undefined) logger.info('the event log can be used again');
    else logger.warn(trouble);
  };
  const timer = setInterval(look, LOOK_MS).unref();
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
    },
  };
}
