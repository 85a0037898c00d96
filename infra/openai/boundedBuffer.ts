import { heapFor } from '../../shared/lib/heapBudget.ts';
import { LIMITS } from '../../shared/limits.ts';

/** Bytes of all answers that are being read; shared by all providers of a process. */
export interface ResponseMemory {
  bytes: number;
}

/** A body as it comes in. */
export interface BoundedBuffer {
  /** False when the chunk would take it beyond its limit; of a chunk as much is kept as fits. */
  add(chunk: Buffer): boolean;
  isFull(): boolean;
  text(): string;
  /** Gives back its share of the answers in progress. */
  release(): void;
}

const FIRST_CAPACITY = 4_096;
/** Of all answers. */
const MAX_BYTES = Math.min(LIMITS.model.answersBytes, heapFor('modelAnswers'));

/**
 * One buffer that grows, and no list of chunks: a provider that sends a byte at a time would make
 * an object of each. Each smaller one, and the last, are freed at once: left to the collector, which
 * sees their objects and not their bytes, those of many answers are a hundred megabytes.
 */
export function createBoundedBuffer(maxBytes: number, inProgress: ResponseMemory): BoundedBuffer {
  let memory = new ArrayBuffer(0);
  let size = 0;

  function makeRoom(needed: number): void {
    const before = memory.byteLength;
    if (needed <= before) return;
    const capacity = Math.min(maxBytes, Math.max(needed, 2 * before, FIRST_CAPACITY));
    memory = memory.transfer(capacity);
    inProgress.bytes += capacity - before;
  }

  return {
    add(chunk) {
      const taken = Math.min(chunk.length, maxBytes - size);
      if (inProgress.bytes + taken > MAX_BYTES) return false;
      makeRoom(size + taken);
      chunk.copy(Buffer.from(memory), size, 0, taken);
      size += taken;
      return taken === chunk.length;
    },
    isFull: () => size === maxBytes,
    text: () => Buffer.from(memory, 0, size).toString('utf8'),
    release() {
      inProgress.bytes -= memory.byteLength;
      memory = memory.transfer(0);
      size = 0;
    },
  };
}
