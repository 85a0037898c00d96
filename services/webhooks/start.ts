import { createBackOff } from '../../shared/backOff.ts';
import { isLogAway, isTurnlogError } from '../../shared/errors.ts';
import { inShort } from '../../shared/inShort.ts';
import { pauseAtMost } from '../../shared/pause.ts';
import type { ReadModels } from '../../shared/ports/readModels.ts';
import type { WebhookProgressStore } from '../../shared/ports/webhookProgress.ts';
import type { WebhooksHealth } from '../../shared/queries/health.ts';
import { keepProgress, openProgress } from './keepProgress.ts';
import type { Sending } from './lane.ts';
import { createLanes, type Lanes } from './lanes.ts';

/** How often it is looked which webhooks there are. */
const LOOK_MS = 500;
const PAUSES = { firstMs: 200, longestMs: 5_000, spread: [0.5, 1] } as const;

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

const reasonOf = (error: unknown): string =>
  isTurnlogError(error) ? error.message : 'It failed; the log says why.';

/** Sends events to webhooks, in this process or after another one. It needs nobody's care. */
export function startWebhooks(webhooks: Webhooks): RunningWebhooks {
  const { sending, readModels, becomeActive, doubt } = webhooks;
  const { logger } = sending;
  const closing = new AbortController();
  const pauses = createBackOff(PAUSES);
  let lanes: Lanes | undefined;
  let reason: string | undefined;

  async function look(): Promise<void> {
    if (doubt() !== undefined) return;
    try {
      await lanes!.look();
      reason = undefined;
    } catch (error) {
      if (isLogAway(error)) return;
      reason = reasonOf(error);
      logger.error({ err: error }, 'it could not be looked which webhooks there are');
    }
  }

  async function lookOnAndOn(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await look();
      await pauseAtMost(LOOK_MS, { signal, ref: false });
    }
  }

  async function sendWith(store: WebhookProgressStore): Promise<void> {
    const signal = AbortSignal.any([closing.signal, store.lost]);
    const progress = await openProgress(store);
    const ended = new AbortController();
    lanes = createLanes(sending, readModels, progress);
    const kept = keepProgress(progress, logger, ended.signal);
    try {
      await lookOnAndOn(signal);
    } finally {
      await lanes.stop();
      lanes = undefined;
      // The last round of it keeps what came in the end.
      ended.abort();
      await kept;
    }
  }

  async function run(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        const store = await becomeActive(closing.signal);
        if (!store) return;
        try {
          pauses.reset();
          await sendWith(store);
        } finally {
          await store.close();
        }
      } catch (error) {
        reason = reasonOf(error);
        const retry_in_ms = pauses.next();
        logger.warn({ ...inShort(error), retry_in_ms }, 'sending to webhooks failed');
        await pauseAtMost(retry_in_ms, { signal: closing.signal, ref: false });
      }
    }
  }

  const running = run();
  return {
    health() {
      const counted = lanes?.count() ?? { enabled: null, failing: null };
      return {
        state: lanes ? 'active' : 'standing_by',
        ...counted,
        reason: doubt() ?? reason ?? lanes?.trouble(),
      };
    },
    async close() {
      closing.abort();
      await running;
    },
  };
}
