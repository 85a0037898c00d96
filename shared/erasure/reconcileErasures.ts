import { TurnlogError } from '../lib/errors/turnlogError.ts';
import type { EventLog, Position, StoredEvent } from '../ports/eventStore.ts';
import type { KeyStore } from '../ports/keyStore.ts';
import type { ReadModels } from '../ports/readModels.ts';

const BATCH = 500;
const ERASED = /^(?:session|agent|account)\.erased\.v1$/;

/** The progress of a reconciliation. */
export interface ReconciliationProgress {
  events: number;
  erasures: number;
  /** Keys that existed again or were not marked as destroyed. */
  destroyed_again: number;
  position: Position | undefined;
}

interface Reconciliation {
  log: Pick<EventLog, 'subscribe'>;
  store: KeyStore;
  after: Position | undefined;
  /** Stops the reconciliation after a batch. */
  signal: AbortSignal;
  onProgress: (state: ReconciliationProgress) => void;
}

const isKeyId = (id: unknown): boolean => typeof id === 'string' && id.length === 16;

/**
 * The destroyed keys according to the event. Parses the data without the codec and without keys,
 * because an erasure contains no protected text.
 */
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
  const keys = await store.find(ids);
  const restored = ids.filter((id) => keys.get(id) !== 'destroyed');
  if (restored.length > 0) await store.endErasure(event.stream, restored);
  return restored.length;
}

/**
 * Destroys again all keys that the erasures in a log had destroyed, after the key store was
 * restored from a backup. Resolves with false when the signal stopped it before the end of the log.
 * The next call continues after the last position.
 */
export async function reconcileErasures(options: Reconciliation): Promise<boolean> {
  const { log, store, after, signal, onProgress } = options;
  const progress: ReconciliationProgress = {
    events: 0,
    erasures: 0,
    destroyed_again: 0,
    position: after,
  };
  for await (const batch of log.subscribe({ after, batchSize: BATCH, signal })) {
    for (const event of batch.events.filter(({ type }) => ERASED.test(type))) {
      progress.erasures += 1;
      progress.destroyed_again += await destroyAgain(store, event);
    }
    progress.events += batch.events.length;
    progress.position = batch.events.at(-1)?.position ?? progress.position;
    onProgress(progress);
    if (batch.caughtUp) return true;
  }
  return false;
}

/** Number of erasures to examine, because some have no keys or are unfinished. */
const NEWEST = 100;

interface RestoreSources {
  keys: Pick<KeyStore, 'find' | 'listErasures'>;
  readModels: Pick<ReadModels, 'listErasures'>;
}

/**
 * Returns a sentence when destroyed keys may exist again, because the key store predates the newest
 * erasure and does not mark its keys as destroyed. Otherwise returns undefined.
 */
export async function describeRestoredKeys({
  keys,
  readModels,
}: RestoreSources): Promise<string | undefined> {
  const rows = await readModels.listErasures({ downTo: undefined, limit: NEWEST });
  const unfinished = new Set((await keys.listErasures(NEWEST)).map(({ stream }) => stream));
  const newest = rows.find(({ stream, key_ids }) => key_ids.length > 0 && !unfinished.has(stream));
  if (!newest) return undefined;
  const states = await keys.find(newest.key_ids);
  if (newest.key_ids.every((id) => states.get(id) === 'destroyed')) return undefined;
  return `The key store is older than the erasure of ${newest.stream}: it was restored, and keys that were destroyed may be back. Stop the services and destroy them again: text-keys reconcile.`;
}
