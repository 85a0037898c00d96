import { TurnlogError } from '../lib/errors/turnlogError.ts';
import type { EventLog, Position, StoredEvent } from '../ports/eventStore.ts';
import type { KeyStore } from '../ports/keyStore.ts';

const BATCH = 500;
const ERASED = /^(?:session|agent|account)\.erased\.v1$/;

/** How far a reconciliation has come. */
export interface Reconciled {
  events: number;
  erasures: number;
  /** Keys that were there again, or were not known as destroyed. */
  destroyed_again: number;
  position: Position | undefined;
}

interface Reconciliation {
  log: Pick<EventLog, 'subscribe'>;
  store: KeyStore;
  after: Position | undefined;
  /** Ends it after a batch. */
  signal: AbortSignal;
  onProgress: (state: Reconciled) => void;
}

const isKeyId = (id: unknown): boolean => typeof id === 'string' && id.length === 16;

/** Read without its key, and so without the codec: an erasure has nothing that is protected. */
function keyIdsOf({ data, type, stream, revision }: StoredEvent): string[] {
  const { key_ids } = JSON.parse(data) as { key_ids?: unknown };
  if (Array.isArray(key_ids) && key_ids.every(isKeyId)) return key_ids as string[];
  throw new TurnlogError(
    'event_invalid',
    `The event ${type} at revision ${revision} of ${stream} does not say which keys were destroyed.`,
  );
}

async function destroyAgain(store: KeyStore, event: StoredEvent): Promise<number> {
  const ids = keyIdsOf(event);
  const found = await store.find(ids);
  const back = ids.filter((id) => found.get(id) !== 'destroyed');
  if (back.length > 0) await store.endErasure(event.stream, back);
  return back.length;
}

/**
 * Goes through a log, and destroys again the keys that its erasures had destroyed: for a key store
 * that was restored from a backup. False where the signal ended it before the end of the log; it
 * goes on after the last position.
 */
export async function reconcileErasures(options: Reconciliation): Promise<boolean> {
  const { log, store, after, signal, onProgress } = options;
  const done: Reconciled = { events: 0, erasures: 0, destroyed_again: 0, position: after };
  for await (const batch of log.subscribe({ after, batchSize: BATCH, signal })) {
    for (const event of batch.events.filter(({ type }) => ERASED.test(type))) {
      done.erasures += 1;
      done.destroyed_again += await destroyAgain(store, event);
    }
    done.events += batch.events.length;
    done.position = batch.events.at(-1)?.position ?? done.position;
    onProgress(done);
    if (batch.caughtUp) return true;
  }
  return false;
}
