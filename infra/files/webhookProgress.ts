import { readFile } from 'node:fs/promises';
import { storeUnavailableError } from '../../shared/lib/errors/turnlogError.ts';
import type {
  WebhookProgress,
  WebhookProgressReader,
  WebhookProgressStore,
} from '../../shared/webhooks/webhookProgress.ts';
import { isAbsent, writeFileAtomically } from './atomicWrite.ts';

/** Errors: `store_unavailable` with what the file system says. */
const onDisk = <Result>(work: () => Promise<Result>): Promise<Result> =>
  work().catch((error: unknown) => {
    throw storeUnavailableError(
      `The file of how far webhooks are can't be read or written: ${(error as Error).message}.`,
      error,
    );
  });

type Entries = [string, WebhookProgress][];

/** What is no JSON was cut off: everything since the creation of each webhook is sent again. */
function parsed(text: string): Map<string, WebhookProgress> {
  try {
    return new Map(JSON.parse(text) as Entries);
  } catch {
    return new Map();
  }
}

/**
 * Progress in one file, which is replaced as a whole. Whoever has the data folder has it, so nobody
 * else delivers.
 */
export function openFileWebhookProgress(
  path: string,
): WebhookProgressStore & WebhookProgressReader {
  let known: Promise<Map<string, WebhookProgress>> | undefined;

  async function read(): Promise<Map<string, WebhookProgress>> {
    const text = await readFile(path, 'utf8').catch((error: unknown) => {
      if (isAbsent(error)) return '';
      throw error;
    });
    return parsed(text);
  }

  /** A failure is tried again. */
  const all = (): Promise<Map<string, WebhookProgress>> =>
    (known ??= onDisk(read).catch((error: unknown) => {
      known = undefined;
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
      await onDisk(() => writeFileAtomically({ path, bytes: JSON.stringify([...entries]) }));
      known = Promise.resolve(entries);
    },
    lost: new AbortController().signal,
    close: async () => undefined,
  };
}
