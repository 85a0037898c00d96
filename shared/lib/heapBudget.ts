import { getHeapStatistics } from 'node:v8';
import { LIMITS } from '../limits.ts';

/** Bytes of the heap that Node.js may have which are for this (see LIMITS.heap). */
export const heapFor = (what: keyof typeof LIMITS.heap): number =>
  Math.floor(getHeapStatistics().heap_size_limit * LIMITS.heap[what]);
