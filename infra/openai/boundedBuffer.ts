import { registerResource } from '../../shared/lib/concurrency/resources.ts';
import { heapBytesFor } from '../../shared/lib/memory/ledger.ts';
import { LIMITS } from '../../shared/limits.ts';

/** The bytes of all answers in progress, shared by all providers of a process. */
export interface ResponseMemory {
  bytes: number;
  /** Answers that found no memory. */
  rejected: number;
}

/** Collects a body as it arrives. */
export interface BoundedBuffer {
  /** Keeps as much of the chunk as fits. Returns false when the chunk exceeds the limit. */
  add(chunk: Buffer): boolean;
  isFull(): boolean;
  text(): string;
  /** Releases its share of the response memory. */
  release(): void;
}

const FIRST_CAPACITY = 4_096;
/** The limit for all answers together. */
const MAX_BYTES = Math.min(LIMITS.model.answersBytes, heapBytesFor('modelAnswers'));

/** Memory for the answers of all providers. */
export function createAnswerMemory(): ResponseMemory {
  const inProgress = { bytes: 0, rejected: 0 };
  registerResource('model_answers', {
    usage: () => ({
      bytes: { limit: MAX_BYTES, used: inProgress.bytes },
      rejected: { account: 0, process: inProgress.rejected },
    }),
  });
  return inProgress;
}

/**
 * One growing buffer instead of a list of chunks, because a provider may send one byte at a time. Each
 * outgrown buffer, and the last one, is freed at once: the garbage collector counts the objects but not
 * their bytes, which for many answers are a hundred megabytes.
 */
export function createBoundedBuffer(maxBytes: number, inProgress: ResponseMemory): BoundedBuffer {
  let memory = new ArrayBuffer(0);
  let size = 0;

  function ensureCapacity(needed: number): void {
    const previous = memory.byteLength;
    if (needed <= previous) return;
    const capacity = Math.min(maxBytes, Math.max(needed, 2 * previous, FIRST_CAPACITY));
    memory = memory.transfer(capacity);
    inProgress.bytes += capacity - previous;
  }

  return {
    add(chunk) {
      const accepted = Math.min(chunk.length, maxBytes - size);
      if (inProgress.bytes + accepted > MAX_BYTES) {
        inProgress.rejected += 1;
        return false;
      }
      ensureCapacity(size + accepted);
      chunk.copy(Buffer.from(memory), size, 0, accepted);
      size += accepted;
      return accepted === chunk.length;
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
