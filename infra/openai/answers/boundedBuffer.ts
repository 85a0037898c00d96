import type { Permit } from '../../../shared/lib/concurrency/capacity.ts';
import type { MemoryLedger } from '../../../shared/lib/memory/ledger.ts';

/** The memory of one answer, which counts among that of its account. */
export interface AnswerMemory {
  /**
   * Reserves the first of these numbers of further bytes that is available, and returns it. Returns
   * undefined when the account or the process has too few left.
   */
  reserve(...sizes: readonly number[]): number | undefined;
  release(bytes: number): void;
}

/** The memory of one answer, which may outlast its arrival. */
export interface HoldableMemory extends AnswerMemory {
  /**
   * Keeps these bytes reserved, or as many as are available of them, while the answer is in use, and at
   * least those of its buffers. Returns a function that releases them; undefined when nothing is available.
   */
  hold(bytes: number): (() => void) | undefined;
}

/** Collects a body as it arrives. */
export interface BoundedBuffer {
  /** Keeps as much of the chunk as fits. Returns false when the chunk exceeds the limit. */
  add(chunk: Buffer): boolean;
  isFull(): boolean;
  text(): string;
  /** Releases its memory. */
  release(): void;
}

const FIRST_CAPACITY = 4_096;

/** Memory for an answer to a run of this account. */
export function createAnswerMemory(
  ledger: Pick<MemoryLedger, 'forceReserve'>,
  account_id: string,
): HoldableMemory {
  let permit: Permit | undefined;
  /** The bytes of its buffers, and those of the text that was made of them. */
  let buffered = 0;
  let held = 0;

  const open = (): Permit =>
    (permit ??= ledger.forceReserve({ account_id, purpose: 'modelAnswers', bytes: 0 }));
  function shrink(): void {
    const bytes = Math.max(buffered, held);
    if (bytes > 0) return void permit?.resize(bytes);
    permit?.release();
    permit = undefined;
  }
  function reject(): undefined {
    permit?.countRejection();
    shrink();
  }

  return {
    reserve(...sizes) {
      const bytes = sizes.find((size) => open().resize(Math.max(buffered + size, held)));
      if (bytes === undefined) return reject();
      buffered += bytes;
      return bytes;
    },
    release(bytes) {
      buffered -= bytes;
      shrink();
    },
    hold(bytes) {
      if (open().resize(Math.max(buffered, bytes))) held = bytes;
      else if (buffered === 0) return reject();
      else held = buffered;
      return () => {
        held = 0;
        shrink();
      };
    },
  };
}

/**
 * One growing buffer instead of a list of chunks, because a provider may send one byte at a time. Each
 * outgrown buffer, and the last one, is freed at once: the garbage collector counts the objects but not
 * their bytes, which for many answers are a hundred megabytes.
 */
export function createBoundedBuffer(maxBytes: number, memory: AnswerMemory): BoundedBuffer {
  let bytes = new ArrayBuffer(0);
  let size = 0;

  function ensureCapacity(needed: number): boolean {
    const previous = bytes.byteLength;
    if (needed <= previous) return true;
    const ample = Math.min(maxBytes, Math.max(needed, 2 * previous, FIRST_CAPACITY));
    const added = memory.reserve(ample - previous, needed - previous);
    if (added === undefined) return false;
    bytes = bytes.transfer(previous + added);
    return true;
  }

  return {
    add(chunk) {
      const accepted = Math.min(chunk.length, maxBytes - size);
      if (!ensureCapacity(size + accepted)) return false;
      chunk.copy(Buffer.from(bytes), size, 0, accepted);
      size += accepted;
      return accepted === chunk.length;
    },
    isFull: () => size === maxBytes,
    text: () => Buffer.from(bytes, 0, size).toString('utf8'),
    release() {
      if (bytes.byteLength === 0) return;
      memory.release(bytes.byteLength);
      bytes = bytes.transfer(0);
      size = 0;
    },
  };
}
