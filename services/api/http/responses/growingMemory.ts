import type { ServerResponse } from 'node:http';
import type { RouteContext } from '../../context.ts';

/** Ends a read that needs more memory than it has. */
class ReadNeedsMemory extends Error {
  readonly bytes: number;

  constructor(bytes: number) {
    super(`The read needs ${bytes} bytes of memory.`);
    this.bytes = bytes;
  }
}

type MemoryContext = Pick<RouteContext, 'memory' | 'responseMemory'>;

/** The response that a read is for. */
interface ReadTarget {
  account_id: string;
  response: ServerResponse;
  /** The bytes to reserve before the read. */
  bytes: number;
}

/** `grow` reserves the bytes that the read needs in all. */
type GrowingRead<Result> = (grow: (bytes: number) => void) => Promise<Result>;

/** A result whose memory stays reserved until `release`. */
interface HeldResult<Result> {
  result: Result;
  /** Releases the memory beyond `bytes`. */
  shrinkTo: (bytes: number) => void;
  /** Idempotent. */
  release: () => void;
}

/** Like readWithinGrowingMemory, but the memory stays reserved for the result. */
export async function readHoldingMemory<Result>(
  { memory, responseMemory }: MemoryContext,
  { account_id, response, bytes: firstBytes }: ReadTarget,
  read: GrowingRead<Result>,
): Promise<HeldResult<Result>> {
  const largest = memory.largestRequest('answers');
  const deadline = responseMemory.deadline();
  for (let reserved = Math.min(firstBytes, largest); ;) {
    const permit = await responseMemory.acquire(account_id, reserved, response, deadline);
    const grow = (wanted: number): void => {
      const bytes = Math.min(wanted, largest);
      if (bytes <= reserved) return;
      if (!permit.resize(bytes)) throw new ReadNeedsMemory(Math.min(2 * bytes, largest));
      reserved = bytes;
    };
    try {
      const result = await read(grow);
      const shrinkTo = (bytes: number): void => void (bytes < reserved && permit.resize(bytes));
      return { result, shrinkTo, release: permit.release };
    } catch (error) {
      permit.release();
      if (!(error instanceof ReadNeedsMemory)) throw error;
      reserved = error.bytes;
    }
  }
}

/**
 * Reads within memory for a response, of which at most half of the account's share is counted. A read
 * that has to wait for memory ends, so that it holds none meanwhile, and starts again with twice as
 * much. A read and its waits have one deadline. Throws `rate_limited` or `overloaded` on a timeout or a
 * disconnect.
 */
export async function readWithinGrowingMemory<Result>(
  context: MemoryContext,
  target: ReadTarget,
  read: GrowingRead<Result>,
): Promise<Result> {
  const { result, release } = await readHoldingMemory(context, target, read);
  release();
  return result;
}
