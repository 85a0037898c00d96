import { setImmediate } from 'node:timers/promises';
import { permanentLeadership } from '../../shared/lib/concurrency/leaderTask.ts';
import { storeUnavailableError } from '../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../shared/limits.ts';
import type {
  WebhookProgress,
  WebhookProgressReader,
  WebhookProgressStore,
} from '../../shared/webhooks/webhookProgress.ts';
import { readRegularFile } from '../lib/regularFile.ts';
import { isAbsent, writeFileAtomically } from './atomicWrite.ts';

/** Converts every error to `store_unavailable`. */
const withStoreErrors = <Result>(work: () => Promise<Result>): Promise<Result> =>
  work().catch((error: unknown) => {
    throw storeUnavailableError(
      `The file of webhook progress can't be read or written: ${(error as Error).message}.`,
      error,
    );
  });

type Entries = [string, WebhookProgress][];

/**
 * A file that is not JSON was truncated. Every event since the creation of a webhook is sent again.
 */
function parseEntries(text: string): Map<string, WebhookProgress> {
  try {
    return new Map(JSON.parse(text) as Entries);
  } catch {
    return new Map();
  }
}

/** Entries written as JSON at a time, which takes about a millisecond. */
const ENTRIES_PER_STEP = 250;

/** The entries as JSON, without the oldest attempts, so that the file stays small. */
async function serializeEntries(entries: ReadonlyMap<string, WebhookProgress>): Promise<string> {
  const share = Math.max(1, Math.floor(LIMITS.webhooks.attemptsInFile / entries.size));
  const pieces: string[] = [];
  for (const [id, progress] of entries) {
    if (pieces.length % ENTRIES_PER_STEP === ENTRIES_PER_STEP - 1) await setImmediate();
    const attempts = progress.attempts && { attempts: progress.attempts.slice(-share) };
    pieces.push(JSON.stringify([id, { ...progress, ...attempts }]));
  }
  return `[${pieces.join(',')}]`;
}

/**
 * Stores the progress in one file, which is replaced atomically. The process that owns the data
 * folder is the only one that delivers, so this store needs no lease.
 */
export function openFileWebhookProgress(
  path: string,
): WebhookProgressStore & WebhookProgressReader {
  let loading: Promise<Map<string, WebhookProgress>> | undefined;

  async function read(): Promise<Map<string, WebhookProgress>> {
    const text = await readRegularFile(path).catch((error: unknown) => {
      if (isAbsent(error)) return '';
      throw error;
    });
    return parseEntries(text.toString());
  }

  /** Loads the file once. A failed load is retried by the next call. */
  const all = (): Promise<Map<string, WebhookProgress>> =>
    (loading ??= withStoreErrors(read).catch((error: unknown) => {
      loading = undefined;
      throw error;
    }));

  return {
    load: async () => new Map(await all()),
    find: async (webhookId) => (await all()).get(webhookId),
    async save(changes) {
      const entries = new Map(await all());
      for (const [id, progress] of changes)
        if (progress) entries.set(id, progress);
        else entries.delete(id);
      const bytes = await serializeEntries(entries);
      await withStoreErrors(() => writeFileAtomically({ path, bytes }));
      loading = Promise.resolve(entries);
    },
    ...permanentLeadership(),
  };
}
