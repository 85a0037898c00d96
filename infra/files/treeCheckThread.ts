import { Worker } from 'node:worker_threads';
import { storeUnavailableError, TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { Leaf, TreeChecker } from '../../shared/transparency/proof/treeChecker.ts';
import type { TreeCheckData, TreeCheckReply, TreeCheckRequest } from './treeCheckWorker.ts';

type Answer = Exclude<TreeCheckReply, { code: unknown }>;

/** Encodes leaves as one string, which transfers to a thread much faster than many strings. */
function textOf(leaves: readonly Leaf[]): string {
  const members: string[] = [];
  for (const { hash, id, position } of leaves) members.push(hash, id, position);
  return JSON.stringify(members);
}

/** Starts a Worker that handles one request at a time. */
function startWorker(workerData: TreeCheckData) {
  const worker = new Worker(new URL('./treeCheckWorker.ts', import.meta.url), {
    workerData,
    name: 'tree-check',
  });
  let pending: PromiseWithResolvers<Answer> | undefined;
  let exitError: TurnlogError | undefined;
  let cause: unknown;
  worker.on('message', (reply: TreeCheckReply) => {
    if (!('code' in reply)) pending?.resolve(reply);
    else if (reply.code === 'store_unavailable')
      pending?.reject(storeUnavailableError(reply.message));
    else pending?.reject(new TurnlogError(reply.code, reply.message));
  });
  worker.on('error', (error: unknown) => (cause = error));
  worker.on('exit', () => {
    exitError = storeUnavailableError(
      'The thread that compares the transparency log has ended.',
      cause,
    );
    pending?.reject(exitError);
  });
  return {
    async ask(request: TreeCheckRequest): Promise<Answer> {
      if (exitError) throw exitError;
      pending = Promise.withResolvers();
      worker.postMessage(request);
      return pending.promise;
    },
    close: async () => void (await worker.terminate()),
  };
}

/**
 * Runs `createTreeChecker` for a tree in files on a separate thread, while the caller verifies the
 * hash chains. Callers must wait for each answer before the next call. Rejects like
 * `createTreeChecker`, and with `store_unavailable` when the thread has ended.
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
