import { errorSummary } from '../../../shared/lib/errors/errorSummary.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type {
  WebhookProgress,
  WebhookProgressStore,
} from '../../../shared/webhooks/webhookProgress.ts';

/**
 * The progress of all webhooks, committed about once a second. Events delivered after the last
 * commit before a crash are sent again.
 */
export interface WebhookCheckpoints {
  get(webhookId: string): WebhookProgress | undefined;
  ids(): string[];
  /** Passing undefined deletes the webhook's progress. */
  set(webhookId: string, progress: WebhookProgress | undefined): void;
  /** Saves all changes. Changes that could not be saved are saved by the next commit. */
  commit(): Promise<void>;
}

export async function loadCheckpoints(store: WebhookProgressStore): Promise<WebhookCheckpoints> {
  const current = await store.load();
  const changed = new Set<string>();
  return {
    get: (id) => current.get(id),
    ids: () => [...current.keys()],
    set(id, progress) {
      if (progress) current.set(id, progress);
      else current.delete(id);
      changed.add(id);
    },
    async commit() {
      if (changed.size === 0) return;
      const changes = new Map(Array.from(changed, (id) => [id, current.get(id)]));
      changed.clear();
      try {
        await store.save(changes);
      } catch (error) {
        for (const id of changes.keys()) changed.add(id);
        throw error;
      }
    },
  };
}

/**
 * Commits checkpoints until the signal aborts, and once after that. Logs only the first of
 * consecutive failures.
 */
export async function commitUntilAborted(
  { commit }: Pick<WebhookCheckpoints, 'commit'>,
  logger: Pick<Logger, 'warn'>,
  signal: AbortSignal,
): Promise<void> {
  let hasFailed = false;
  let isLast = false;
  while (!isLast) {
    await sleepUntilAborted(LIMITS.webhooks.keepMs, { signal, ref: false });
    // Changes made during a commit need another commit.
    isLast = signal.aborted;
    await commit().then(
      () => void (hasFailed = false),
      (error: unknown) => {
        if (!hasFailed)
          logger.warn(errorSummary(error), 'the progress of webhooks could not be saved');
        hasFailed = true;
      },
    );
  }
}
