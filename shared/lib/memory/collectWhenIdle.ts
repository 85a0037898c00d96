import { getHeapStatistics } from 'node:v8';
import { MIB } from '../units.ts';

const CHECK_MS = 1_000;
/** The event loop of an idle thread is active for less than this share of the time between checks. */
const IDLE_SHARE = 0.1;
/** A collection stops the thread for about a millisecond per megabyte that stays. */
const MOST_BYTES = 128 * MIB;

const collectGarbage = (): void => globalThis.gc?.({ type: 'major', flavor: 'last-resort' });
const sizeOfHeap = (): number => getHeapStatistics().total_heap_size;

/**
 * Returns the memory of the garbage of the start, and of empty pages, to the system when this thread
 * is idle for the first time. V8 by itself keeps it until the heap has grown, which may be never. Not
 * again after loads: the next requests would pay for code that is compiled anew. A heap that is large
 * by then is left to V8, which collects it in short steps. Only a process that was started with
 * `--expose-gc` can do this.
 */
export function collectWhenIdle(collect = collectGarbage, heapBytes = sizeOfHeap): void {
  let last = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    if (utilization >= IDLE_SHARE) return;
    clearInterval(timer);
    if (heapBytes() <= MOST_BYTES) collect();
  }, CHECK_MS).unref();
}
