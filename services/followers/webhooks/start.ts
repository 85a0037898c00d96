import { startLeaderTask } from '../../../shared/lib/concurrency/leaderTask.ts';
import type { ReadModels } from '../../../shared/ports/readModels.ts';
import type { WebhookProgressStore } from '../../../shared/webhooks/webhookProgress.ts';
import type { WebhooksHealth } from '../../../shared/health/health.ts';
import { commitUntilAborted, loadCheckpoints } from './checkpointCommitter.ts';
import type { DeliveryContext } from './delivery.ts';
import { createDeliveryTasks, type DeliveryTasks } from './deliveryTasks.ts';

/** How often the list of enabled webhooks is read. */
const POLL_MS = 500;

export interface Webhooks {
  delivery: DeliveryContext;
  readModels: Pick<ReadModels, 'listEnabledWebhooks' | 'findWebhook'>;
  /**
   * Why the read models can't be trusted now; undefined while they can. While they are rebuilt, they
   * may show a deleted webhook, with an address that it no longer has.
   */
  pausedReason: () => string | undefined;
  /** Waits until no other process delivers; resolves with undefined when the signal aborted first. */
  acquireLeadership: (signal: AbortSignal) => Promise<WebhookProgressStore | undefined>;
}

export interface RunningWebhooks {
  health(): WebhooksHealth;
  /** Lets messages in flight end, within limits. */
  close(): Promise<void>;
}

/** Delivers events to webhooks, in this process or after another one. Failures are retried. */
export function startWebhooks(webhooks: Webhooks): RunningWebhooks {
  const { delivery, readModels, acquireLeadership, pausedReason } = webhooks;
  const { logger } = delivery;
  let tasks: DeliveryTasks | undefined;

  async function begin(store: WebhookProgressStore) {
    const checkpoints = await loadCheckpoints(store);
    const ended = new AbortController();
    const started = createDeliveryTasks(delivery, readModels, checkpoints);
    const committing = commitUntilAborted(checkpoints, logger, ended.signal);
    tasks = started;
    return {
      poll: started.poll,
      async stop() {
        await started.stop();
        tasks = undefined;
        // The last commit includes what the stopped tasks have reported.
        ended.abort();
        await committing;
      },
    };
  }

  const leader = startLeaderTask({
    name: 'sending to webhooks',
    acquireLeadership,
    begin,
    pollMs: POLL_MS,
    pausedReason,
    logger,
  });
  return {
    health: () => ({
      state: leader.isActive() ? 'active' : 'standing_by',
      ...(tasks?.count() ?? { enabled: null, failing: null }),
      reason: leader.reason() ?? tasks?.trouble(),
    }),
    close: leader.close,
  };
}
