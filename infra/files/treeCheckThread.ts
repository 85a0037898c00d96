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
  let text = '';
  for (const { hash } of leaves) text += `${hash.includes('\n') ? '' : hash}\n`;
  const last: [number, string, string][] = [];
  const first = TILE_WIDTH - 1 - (size % TILE_WIDTH);
  for (let at = first; at < leaves.length; at += TILE_WIDTH)
    last.push([at, leaves[at]!.id, leaves[at]!.position]);
  return text + JSON.stringify(last);
}

/**
 * Encodes events as one string. Turnlog never writes a line feed into an event; one makes the worker
 * report all events.
 */
function eventsText(events: readonly StoredEvent[]): string {
  let text = '';
  for (const { id, stream, revision, type, data, metadata } of events)
    text += `${id}\n${stream}\n${revision}\n${type}\n${data}\n${metadata}\n`;
  return text.slice(0, -1);
}

/** Heap of the thread, in all and for young objects. */
const HEAP_MB = 256;
const YOUNG_MB = 24;

/** Starts a Worker that handles requests in their order. */
function startWorker(workerData: TreeCheckData) {
  const worker = new Worker(new URL('./treeCheckWorker.ts', import.meta.url), {
    workerData,
    name: 'tree-check',
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: YOUNG_MB },
  });
  const pending: PromiseWithResolvers<Answer>[] = [];
  let exitError: TurnlogError | undefined;
  let cause: unknown;
  function receive(reply: TreeCheckReply): void {
    const answered = pending.shift();
    if (!('code' in reply)) answered?.resolve(reply);
    else if (reply.code === 'store_unavailable')
      answered?.reject(storeUnavailableError(reply.message));
    else answered?.reject(new TurnlogError(reply.code, reply.message));
  }
  worker.on('message', (replies: TreeCheckReply[]) => replies.forEach(receive));
  worker.on('error', (error: unknown) => (cause = error));
  worker.on('exit', () => {
    exitError = storeUnavailableError(
      'The thread that compares the transparency log has ended.',
      cause,
    );
    for (const { reject } of pending.splice(0)) reject(exitError);
  });
  /** Requests of one turn of the event loop, which are sent together: each wake-up costs. */
  let requests: TreeCheckRequest[] = [];
  function send(): void {
    worker.postMessage(requests);
    requests = [];
  }

  return {
    async ask(request: TreeCheckRequest): Promise<Answer> {
      if (exitError) throw exitError;
      const answer = Promise.withResolvers<Answer>();
      pending.push(answer);
      if (requests.push(request) === 1) queueMicrotask(send);
      return answer.promise;
    },
    close: async () => void (await worker.terminate()),
  };
}

/**
 * Runs `createTreeChecker` for a tree in files on a separate thread, while the caller verifies the
 * hash chains. Rejects like `createTreeChecker`, and with `store_unavailable` when the thread has ended.
 */
export async function startTreeCheckThread(
  data: TreeCheckData,
): Promise<TreeChecker & { close: () => Promise<void> }> {
  const { ask, close } = startWorker(data);
  let size: number;
  /** Until a fault, which ends the comparison, the tree grows by every leaf. */
  let sizeAfterPending: number;
  try {
    ({ size } = await ask('open'));
  } catch (error) {
    await close();
    throw error;
  }
  sizeAfterPending = size;
  return {
    size: () => size,
    async compare(leaves) {
      const compare = textOf(leaves, sizeAfterPending);
      sizeAfterPending += leaves.length;
      const answer = await ask({ compare, count: leaves.length });
      size = answer.size;
      return answer.found;
    },
    unlikeWritten: async (events) =>
      (await ask({ contents: eventsText(events), count: events.length })).unlike ?? [],
    end: async () => (await ask('end')).end,
    close,
  };
}
