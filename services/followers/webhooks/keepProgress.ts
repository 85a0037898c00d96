import { errorSummary } from '../../../shared/lib/errors/errorSummary.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type {
  WebhookChanges,
  WebhookProgress,
  WebhookProgressStore,
} from '../../../shared/webhooks/webhookProgress.ts';

/** Progress in memory, which is kept about once a second: what is lost of it is sent again. */
export interface KeptProgress {
  get(webhookId: string): WebhookProgress | undefined;
  ids(): string[];
  /** Undefined: nothing is to be kept of it. */
  set(webhookId: string, progress: WebhookProgress | undefined): void;
  /** Keeps what is new. Errors: `store_unavailable`; it stays new then. */
  flush(): Promise<void>;
}

/** Errors: `store_unavailable`. */
export async function openProgress(store: WebhookProgressStore): Promise<KeptProgress> {
  const known = await store.load();
  let fresh = new Map<string, WebhookProgress | undefined>();
  return {
    get: (id) => known.get(id),
    ids: () => [...known.keys()],
    set(id, progress) {
      if (progress) known.set(id, progress);
      else known.delete(id);
      fresh.set(id, progress);
    },
    async flush() {
      if (fresh.size === 0) return;
      const saved: WebhookChanges = fresh;
      fresh = new Map();
      try {
        await store.save(saved);
      } catch (error) {
        fresh = new Map([...saved, ...fresh]);
        throw error;
      }
    },
  };
}

/** Keeps progress now and then until the signal, and says when that fails. */
export async function keepProgress(
  progress: Pick<KeptProgress, 'flush'>,
  logger: Pick<Logger, 'warn'>,
  signal: AbortSignal,
): Promise<void> {
  let failed = false;
  let last = false;
  while (!last) {
    await sleepUntilAborted(LIMITS.webhooks.keepMs, { signal, ref: false });
    // What comes while a round keeps what was there needs one more.
    last = signal.aborted;
    await progress.flush().then(
      () => void (failed = false),
      (error: unknown) => {
        if (!failed) logger.warn(errorSummary(error), 'how far webhooks are could not be kept');
        failed = true;
      },
    );
  }
}
