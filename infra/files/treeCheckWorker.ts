/** The thread that compares a tree. treeCheckThread.ts starts it with TreeCheckData. */
import { parentPort, workerData, type MessagePort } from 'node:worker_threads';
import { isTurnlogError, type ErrorCode } from '../../shared/lib/errors/turnlogError.ts';
import { isAsWritten } from '../../shared/eventlog/hashChain.ts';
import type { Position, StoredEvent } from '../../shared/ports/eventStore.ts';
import {
  createTreeChecker,
  type ComparedPart,
  type FoundFault,
  type Leaf,
} from '../../shared/transparency/proof/treeChecker.ts';
import type { TreeFault } from '../../shared/transparency/proof/treeFault.ts';
import { BLOCKING_READS, fileTileReader } from './tileReader.ts';

/** The part of a tree to compare, and its folder; undefined when no tree exists. */
export interface TreeCheckData extends ComparedPart {
  folder: string | undefined;
}

/**
 * `compare` has the hash of each of `count` leaves on a line, then a JSON array of the index, the id and the
 * position of some. `contents` has the id, stream, revision, type, data and metadata of each event.
 */
export type TreeCheckRequest =
  { compare: string; count: number } | { contents: string; count: number } | 'open' | 'end';

const LINES_OF_EVENT = 6;

function leavesOf(text: string, count: number): Leaf[] {
  const lines = text.split('\n');
  const leaves = lines
    .slice(0, count)
    .map((hash): Leaf => ({ hash, id: '', position: '' as Position }));
  for (const [at, id, position] of JSON.parse(lines[count]!) as [number, string, Position][])
    leaves[at] = { hash: lines[at]!, id, position };
  return leaves;
}

/** The indexes of events that are not as they were written; of all if one has a line feed. */
function unlikeWritten(text: string, count: number): number[] {
  const lines = text.split('\n');
  const all = Array.from({ length: count }, (_, index) => index);
  if (lines.length !== count * LINES_OF_EVENT) return all;
  return all.filter((index) => {
    const at = index * LINES_OF_EVENT;
    const [id, stream, revision, type, data, metadata] = lines.slice(at, at + LINES_OF_EVENT);
    const event = { id, stream, revision: Number(revision), type, data, metadata };
    return !isAsWritten({ ...event, position: '' } as StoredEvent);
  });
}

/** The size of the recomputed tree and the result, or an error. */
export type TreeCheckReply =
  | {
      size: number;
      found?: FoundFault | undefined;
      end?: TreeFault | undefined;
      unlike?: readonly number[];
    }
  | { code: ErrorCode; message: string };

function serve(port: MessagePort, { folder, ...part }: TreeCheckData): void {
  const reader = fileTileReader(async () => folder, BLOCKING_READS);
  const opened = createTreeChecker({ ...part, reader });
  // The first request reports the error.
  opened.catch(() => undefined);

  async function answer(request: TreeCheckRequest): Promise<TreeCheckReply> {
    try {
      const tree = await opened;
      if (request === 'open') return { size: tree.size() };
      if (request === 'end') return { end: await tree.end(), size: tree.size() };
      if ('contents' in request)
        return { size: tree.size(), unlike: unlikeWritten(request.contents, request.count) };
      const fault = await tree.compare(leavesOf(request.compare, request.count));
      return { size: tree.size(), found: fault };
    } catch (error) {
      if (isTurnlogError(error)) return { code: error.code, message: error.message };
      throw error;
    }
  }

  async function answerAll(requests: readonly TreeCheckRequest[]): Promise<void> {
    const replies: TreeCheckReply[] = [];
    for (const request of requests) replies.push(await answer(request));
    port.postMessage(replies);
  }

  let previous = Promise.resolve();
  port.on('message', (requests: TreeCheckRequest[]) => {
    previous = previous.then(() => answerAll(requests));
  });
}

if (parentPort) serve(parentPort, workerData as TreeCheckData);
