import { Worker } from 'node:worker_threads';
import { storeUnavailableError, TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { Leaf, TreeChecker } from '../../shared/transparency/proof/treeChecker.ts';
import type { TreeCheckData, TreeCheckReply, TreeCheckRequest } from './treeCheckWorker.ts';

type Answer = Exclude<TreeCheckReply, { code: unknown }>;

/** One text: a thread is handed it in far less time than many. */
function textOf(leaves: readonly Leaf[]): string {
  const members: string[] = [];
  for (const { hash, id, position } of leaves) members.push(hash, id, position);
  return JSON.stringify(members);
}

/** A Worker, and who waits for its answer. */
function startWorker(workerData: TreeCheckData) {
  const worker = new Worker(new URL('./treeCheckWorker.ts', import.meta.url), {
    workerData,
    name: 'tree-check',
  });
  let asked: PromiseWithResolvers<Answer> | undefined;
  let gone: TurnlogError | undefined;
  let cause: unknown;
  worker.on('message', (reply: TreeCheckReply) => {
    if (!('code' in reply)) asked?.resolve(reply);
    else if (reply.code === 'store_unavailable')
      asked?.reject(storeUnavailableError(reply.message));
    else asked?.reject(new TurnlogError(reply.code, reply.message));
  });
  worker.on('error', (error: unknown) => (cause = error));
  worker.on('exit', () => {
    gone = storeUnavailableError('The thread that compares the transparency log has ended.', cause);
    asked?.reject(gone);
  });
  return {
    async ask(request: TreeCheckRequest): Promise<Answer> {
      if (gone) throw gone;
      asked = Promise.withResolvers();
      worker.postMessage(request);
      return asked.promise;
    },
    close: async () => void (await worker.terminate()),
  };
}

/**
 * Compares a tree in files as `createTreeChecker` does, on a thread of its own: beside it the chains
 * are verified. One question at a time. Errors: those of `createTreeChecker`, `store_unavailable` where
 * the thread has ended.
 */
export async function startTreeCheckThread(
  data: TreeCheckData,
): Promise<TreeChecker & { close: () => Promise<void> }> {
  const { ask, close } = startWorker(data);
  let size: number;
  try {
    ({ size } = await ask('open'));
  } catch (error) {
    await close();
    throw error;
  }
  return {
    size: () => size,
    async compare(leaves) {
      const answer = await ask({ compare: textOf(leaves) });
      size = answer.size;
      return answer.found;
    },
    end: async () => (await ask('end')).end,
    close,
  };
}
