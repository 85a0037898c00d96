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

/**
 * Reads within memory for a response. `grow` reserves the bytes that the read needs in all, of which
 * at most half of the account's share is counted. A read that has to wait for memory ends, so that it
 * holds none meanwhile, and starts again with twice as much. Throws `rate_limited` or `overloaded`
 * on a timeout or a disconnect.
 */
export async function readWithinGrowingMemory<Result>(
  { memory, responseMemory }: Pick<RouteContext, 'memory' | 'responseMemory'>,
  account_id: string,
  response: ServerResponse,
  read: (grow: (bytes: number) => void) => Promise<Result>,
): Promise<Result> {
  const largest = memory.largestRequest('answers');
  for (let reserved = 0; ;) {
    const permit = await responseMemory.acquire(account_id, reserved, response);
    const grow = (wanted: number): void => {
      const bytes = Math.min(wanted, largest);
      if (bytes <= reserved) return;
      if (!permit.resize(bytes)) throw new ReadNeedsMemory(Math.min(2 * bytes, largest));
      reserved = bytes;
    };
    try {
      return await read(grow);
    } catch (error) {
      if (!(error instanceof ReadNeedsMemory)) throw error;
      reserved = error.bytes;
    } finally {
      permit.release();
    }
  }
}
