// What tests get for `node:timers/promises`, whose timers Jest can't fake: Node's own, and while a
// test fakes the global timers, pauses on those.
import { promises as real } from 'node:timers';

const { setTimeout: realSetTimeout } = globalThis;

function pauseOnFakeTimers(ms, value, { signal } = {}) {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(new DOMException('The operation was aborted', 'AbortError'));
    };
    const timer = globalThis.setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve(value);
    }, ms);
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
}

export const setTimeout = (...pause) =>
  globalThis.setTimeout === realSetTimeout
    ? real.setTimeout(...pause)
    : pauseOnFakeTimers(...pause);
export const { setImmediate, setInterval, scheduler } = real;
export default { ...real, setTimeout };
