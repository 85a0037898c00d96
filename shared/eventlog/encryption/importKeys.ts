import type { KeySource, KeyStore } from '../../ports/keyStore.ts';

/** Keys that are imported in one transaction. */
const PAGE = 500;

/** The progress of an import, in keys and erasures. */
export interface ImportProgress {
  imported: number;
  /** Keys left unchanged because the store had them, or had destroyed them. */
  present: number;
  destroyed: number;
  open_erasures: number;
}

interface ImportOptions {
  from: KeySource;
  to: Pick<KeyStore, 'find' | 'insert' | 'beginErasure' | 'endErasure'>;
  /** Ends the import after the current page. */
  signal: AbortSignal;
  onProgress: (state: ImportProgress) => void;
}

interface Page {
  after?: string;
  limit: number;
}

/** Reads a list page by page until the signal aborts. */
async function* readPages<Item>(
  read: (page: Page) => Promise<Item[]>,
  idOf: (item: Item) => string,
  signal: AbortSignal,
): AsyncGenerator<Item[]> {
  for (let after: string | undefined; !signal.aborted;) {
    const items = await read({ limit: PAGE, ...(after !== undefined && { after }) });
    if (items.length > 0) yield items;
    if (items.length < PAGE) return;
    after = idOf(items.at(-1)!);
  }
}

/**
 * Copies open erasures and the ids of destroyed keys to another store, which destroys those keys too. Can be
 * repeated after an interruption. Throws `store_unavailable`.
 */
export async function importErasures({
  from,
  to,
  signal,
  onProgress,
}: ImportOptions): Promise<ImportProgress> {
  const progress: ImportProgress = { imported: 0, present: 0, destroyed: 0, open_erasures: 0 };
  for (const { stream, why } of await from.listErasures(Number.MAX_SAFE_INTEGER)) {
    if (signal.aborted) break;
    await to.beginErasure(stream, why);
    progress.open_erasures += 1;
  }
  for await (const ids of readPages(from.listDestroyed, (id) => id, signal)) {
    // No erasure is recorded for the empty stream name.
    await to.endErasure('', ids);
    progress.destroyed += ids.length;
    onProgress(progress);
  }
  return progress;
}

/**
 * Copies wrapped keys and, before them, erasures to another store, which keeps the keys that it has. A key
 * that either store has destroyed is destroyed afterwards. Can be repeated after an interruption. Throws
 * `store_unavailable`.
 */
export async function importKeys(options: ImportOptions): Promise<ImportProgress> {
  const { from, to, signal, onProgress } = options;
  const progress = await importErasures(options);
  for await (const keys of readPages(from.list, ({ key_id }) => key_id, signal)) {
    const known = await to.find(keys.map(({ key_id }) => key_id));
    const unknown = keys.filter(({ key_id }) => !known.has(key_id));
    if (unknown.length > 0) await to.insert(unknown);
    progress.imported += unknown.length;
    progress.present += keys.length - unknown.length;
    onProgress(progress);
  }
  return progress;
}
