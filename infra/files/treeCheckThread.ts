import { Worker } from 'node:worker_threads';
import { storeUnavailableError, TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { StoredEvent } from '../../shared/ports/eventStore.ts';
import type { Leaf, TreeChecker } from '../../shared/transparency/proof/treeChecker.ts';
import { TILE_WIDTH } from '../../shared/transparency/tlog/tiles.ts';
import type { TreeCheckData, TreeCheckReply, TreeCheckRequest } from './treeCheckWorker.ts';

type Answer = Exclude<TreeCheckReply, { code: unknown }>;

/**
 * Encodes leaves as one string, which transfers to a thread much faster than many strings. A tree of
 * `size` leaves needs the ids and positions of those only with which it fills a bundle.
 */
function textOf(leaves: readonly Leaf[], size: number): string {
  // No hash has a line feed; an event with one has the same leaf as an event without a hash.
  const hashes = leaves.map(({ hash }) => (hash.includes('\n') ? '' : hash));
  const last = leaves.flatMap(({ id, position }, at) =>
    (size + at + 1) % TILE_WIDTH === 0 ? [[at, id, position] as const] : [],
  );
  return [...hashes, JSON.stringify(last)].join('\n');
}

/**
 * Encodes events as one string. Turnlog never writes a line feed into an event; one makes the worker
 * report all events.
 */
const eventsText = (events: readonly StoredEvent[]): string =>
  events
    .map(({ id, stream, revision, type, data, metadata }) =>
      [id, stream, revision, type, data, metadata].join('\n'),
    )
    .join('\n');

/** Starts a Worker that handles requests in their order. */
function startWorker(workerData: TreeCheckData) {
  const worker = new Worker(new URL('./treeCheckWorker.ts', import.meta.url), {
    workerData,
    name: 'tree-check',
  });
  const pending: PromiseWithResolvers<Answer>[] = [];
  let exitError: TurnlogError | undefined;
  let cause: unknown;
  worker.on('message', (reply: TreeCheckReply) => {
    const answered = pending.shift();
    if (!('code' in reply)) answered?.resolve(reply);
    else if (reply.code === 'store_unavailable')
      answered?.reject(storeUnavailableError(reply.message));
    else answered?.reject(new TurnlogError(reply.code, reply.message));
  });
  worker.on('error', (error: unknown) => (cause = error));
  worker.on('exit', () => {
    exitError = storeUnavailableError(
      'The thread that compares the transparency log has ended.',
      cause,
    );
    for (const { reject } of pending.splice(0)) reject(exitError);
  });
  return {
    async ask(request: TreeCheckRequest): Promise<Answer> {
      if (exitError) throw exitError;
      const answer = Promise.withResolvers<Answer>();
      pending.push(answer);
      worker.postMessage(request);
      return answer.promise;
    },
    close: async () => void (await worker.terminate()),
  };
}

/**
 * Runs `createTreeChecker` for a tree in files on a separate thread, while the caller verifies the
 * hash chains. Callers must wait for a comparison before the next one. Rejects like
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
      const answer = await ask({ compare: textOf(leaves, size), count: leaves.length });
      size = answer.size;
      return answer.found;
    },
    unlikeWritten: async (events) =>
      (await ask({ contents: eventsText(events), count: events.length })).unlike ?? [],
    end: async () => (await ask('end')).end,
    close,
  };
}
