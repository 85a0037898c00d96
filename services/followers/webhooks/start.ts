import { startLeaderTask } from '../../../shared/lib/concurrency/leaderTask.ts';
import type { ReadModels } from '../../../shared/ports/readModels.ts';
import type { WebhookProgressStore } from '../../../shared/webhooks/webhookProgress.ts';
import type { WebhooksHealth } from '../../../shared/health/health.ts';
import { keepProgress, openProgress } from './keepProgress.ts';
import type { Sending } from './lane.ts';
import { createLanes, type Lanes } from './lanes.ts';

/** How often it is looked which webhooks there are. */
const LOOK_MS = 500;

export interface Webhooks {
  sending: Sending;
  readModels: Pick<ReadModels, 'listEnabledWebhooks' | 'findWebhook'>;
  /**
   * Why the read models can't be trusted now; undefined where they can. While they are made anew,
   * a webhook that was deleted may be there, with an address that it no longer has.
   */
  doubt: () => string | undefined;
  /**
   * Waits until no other process sends; undefined when the signal aborted first. Errors:
   * `store_unavailable`.
   */
  becomeActive: (signal: AbortSignal) => Promise<WebhookProgressStore | undefined>;
}

export interface RunningWebhooks {
  health(): WebhooksHealth;
  /** Lets messages on their way end, within limits. */
  close(): Promise<void>;
}

/** Sends events to webhooks, in this process or after another one. It needs nobody's care. */
export function startWebhooks(webhooks: Webhooks): RunningWebhooks {
  const { sending, readModels, becomeActive, doubt } = webhooks;
  const { logger } = sending;
  let lanes: Lanes | undefined;

  async function begin(store: WebhookProgressStore) {
    const progress = await openProgress(store);
    const ended = new AbortController();
    const begun = createLanes(sending, readModels, progress);
    const kept = keepProgress(progress, logger, ended.signal);
    lanes = begun;
    return {
      poll: () => begun.look(),
      async stop() {
        await begun.stop();
        lanes = undefined;
        // The last round of it keeps what came in the end.
        ended.abort();
        await kept;
      },
    };
  }

  const name = 'sending to webhooks';
  const work = startLeaderTask({
    name,
    acquireLeadership: becomeActive,
    begin,
    pollMs: LOOK_MS,
    pausedReason: doubt,
    logger,
  });
  return {
    health: () => ({
      state: work.isActive() ? 'active' : 'standing_by',
      ...(lanes?.count() ?? { enabled: null, failing: null }),
      reason: work.reason() ?? lanes?.trouble(),
    }),
    close: work.close,
  };
}
