import { getHeapStatistics } from 'node:v8';
import { LIMITS } from '../limits.ts';

/** The part of the heap limit of Node.js, in bytes, that LIMITS.heap grants a purpose. */
export const heapFor = (purpose: keyof typeof LIMITS.heap): number =>
  Math.floor(getHeapStatistics().heap_size_limit * LIMITS.heap[purpose]);
