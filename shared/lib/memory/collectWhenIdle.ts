import { getHeapStatistics } from 'node:v8';
import { MIB } from '../units.ts';

const CHECK_MS = 1_000;
/** The event loop of an idle thread is active for less than this share of the time between checks. */
const IDLE_SHARE = 0.1;
/** A heap is collected again after it has grown by this much. */
const GROWTH_BYTES = 16 * MIB;
/** A collection stops the thread for about a millisecond per megabyte that stays. */
const MOST_BYTES = 128 * MIB;

const collectGarbage = (): void => globalThis.gc?.({ type: 'major', flavor: 'last-resort' });
const sizeOfHeap = (): number => getHeapStatistics().total_heap_size;

/**
 * Returns the memory of garbage and of empty pages to the system while this thread is idle: after
 * its start, and after loads. V8 by itself keeps it until the heap has grown, which may be never.
 * Heaps that stay large are left to V8, which collects them in short steps. Only a process that was
 * started with `--expose-gc` can do this.
 */
export function collectWhenIdle(collect = collectGarbage, heapBytes = sizeOfHeap): void {
  let kept = -Infinity;
  let last = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    if (utilization >= IDLE_SHARE || heapBytes() < kept + GROWTH_BYTES) return;
    collect();
    kept = heapBytes();
    if (kept > MOST_BYTES) clearInterval(timer);
  }, CHECK_MS).unref();
}
