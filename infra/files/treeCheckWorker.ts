/** The thread that compares a tree. treeCheckThread.ts starts it with TreeCheckData. */
import { parentPort, workerData, type MessagePort } from 'node:worker_threads';
import { isTurnlogError, type ErrorCode } from '../../shared/lib/errors/turnlogError.ts';
import type { Position } from '../../shared/ports/eventStore.ts';
import {
  createTreeChecker,
  type ComparedPart,
  type FoundFault,
  type Leaf,
} from '../../shared/transparency/proof/treeChecker.ts';
import type { TreeFault } from '../../shared/transparency/proof/treeFault.ts';
import { fileTileReader } from './tileReader.ts';

/** The part of a tree to compare, and its folder; undefined when no tree exists. */
export interface TreeCheckData extends ComparedPart {
  folder: string | undefined;
}

/** `compare` is a JSON array of the hash, the id and the position of each leaf. */
export type TreeCheckRequest = { compare: string } | 'open' | 'end';

function leavesOf(text: string): Leaf[] {
  const members = JSON.parse(text) as string[];
  return Array.from({ length: members.length / 3 }, (_, at) => ({
    hash: members[3 * at]!,
    id: members[3 * at + 1]!,
    position: members[3 * at + 2] as Position,
  }));
}

/** The size of the recomputed tree and the result, or an error. */
export type TreeCheckReply =
  | { size: number; found?: FoundFault | undefined; end?: TreeFault | undefined }
  | { code: ErrorCode; message: string };

function serve(port: MessagePort, { folder, ...part }: TreeCheckData): void {
  const opened = createTreeChecker({ ...part, reader: fileTileReader(async () => folder) });
  // The first request reports the error.
  opened.catch(() => undefined);

  async function answer(request: TreeCheckRequest): Promise<TreeCheckReply> {
    try {
      const tree = await opened;
      if (request === 'open') return { size: tree.size() };
      if (request === 'end') return { end: await tree.end(), size: tree.size() };
      const fault = await tree.compare(leavesOf(request.compare));
      return { size: tree.size(), found: fault };
    } catch (error) {
      if (isTurnlogError(error)) return { code: error.code, message: error.message };
      throw error;
    }
  }

  // Requests are sequential: the caller waits for each answer.
  port.on('message', (request: TreeCheckRequest) => {
    void answer(request).then((reply) => port.postMessage(reply));
  });
}

if (parentPort) serve(parentPort, workerData as TreeCheckData);
