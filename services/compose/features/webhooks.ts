import { join } from 'node:path';
import { openFileWebhookProgress } from '../../../infra/files/webhookProgress.ts';
import { createWebhookSender } from '../../../infra/web/webhookSender.ts';
import { giveUpWebhook } from '../../../shared/webhooks/changeWebhook.ts';
import type { HandleContext } from '../../../shared/commandHandling/handle.ts';
import { createFairSemaphore } from '../../../shared/lib/concurrency/fairSemaphore.ts';
import type { AccountFeed } from '../../../shared/feed/accountFeed.ts';
import { cloudEventOf } from '../../../shared/publicEvents/cloudEvent.ts';
import type { PublicEvent } from '../../../shared/publicEvents/publicEvent.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { ReadModels } from '../../../shared/ports/readModels.ts';
import type { WebhookProgressStore } from '../../../shared/webhooks/webhookProgress.ts';
import { textsOf, type ServedWebhooks } from '../../../shared/webhooks/queries.ts';
import type { DisabledReason } from '../../../shared/webhooks/events.ts';
import type { WebhookRow } from '../../../shared/readModels/tables.ts';
import type { ProcessPart } from '../../process/processParts.ts';
import { followFeed } from '../../followers/webhooks/followAccount.ts';
import { startWebhooks, type Webhooks } from '../../followers/webhooks/start.ts';
import type { Opening } from '../opening.ts';
import type { EmbeddedLocation } from '../logLocation.ts';
import { systemClock } from '../system.ts';

type Sender = HandleContext & { readModels: ReadModels; feed: AccountFeed };

/** Who sends when, and what is asked of the read models before. */
type Sends = Pick<Webhooks, 'acquireLeadership' | 'pausedReason'>;

/** Parts that know whether the read models can be trusted; they are prepared before. */
type Shown = readonly Pick<ProcessPart, 'doubt'>[];

const doubtOfAny = (shown: Shown): string | undefined =>
  shown.map((part) => part.doubt?.()).find((doubt) => doubt !== undefined);

/** The part that sends, while the process serves and no other process sends. */
function webhooksPart(
  { config, logger }: Opening,
  context: Sender,
  { acquireLeadership, pausedReason }: Sends,
): ProcessPart {
  const { messages: places, messageBytes: bytes } = LIMITS.webhooks;
  const delivery = {
    follow: followFeed(context.feed, context.store),
    send: createWebhookSender({ allowPrivate: config.WEBHOOKS_ALLOW_PRIVATE }),
    bodyOf: (event: PublicEvent) => JSON.stringify(cloudEventOf(event, config.KAFKA_EVENT_SOURCE)),
    semaphore: createFairSemaphore({ permits: places, bytes }),
    textsOf: (row: WebhookRow) => textsOf(context, row),
    disable: (row: WebhookRow, reason: DisabledReason) => giveUpWebhook(context, row, reason),
    clock: systemClock,
    logger,
  };
  let running: ReturnType<typeof startWebhooks> | undefined;
  let starting: string | undefined = 'The read models are being brought up to date.';
  return {
    prepare: async () => void (starting = undefined),
    health: async () => (running ? { webhooks: running.health() } : {}),
    upkeep() {
      const { readModels } = context;
      running = startWebhooks({
        delivery,
        readModels,
        acquireLeadership,
        pausedReason: () => starting ?? pausedReason(),
      });
      const { close } = running;
      return { [Symbol.asyncDispose]: close };
    },
  };
}

/** Webhooks of the one process with that data folder. */
export function openEmbeddedWebhooks(
  opening: Opening,
  context: Sender & { shown: Shown },
  { dataFolder }: EmbeddedLocation,
): { part: ProcessPart; served: ServedWebhooks } {
  const progress = openFileWebhookProgress(join(dataFolder, 'webhook-progress'));
  return {
    part: webhooksPart(opening, context, {
      acquireLeadership: async () => progress,
      pausedReason: () => doubtOfAny(context.shown),
    }),
    served: { allowPrivate: opening.config.WEBHOOKS_ALLOW_PRIVATE, progress },
  };
}

/** What the API of a replica knows of webhooks. */
export async function openServedWebhooks(
  { config, opened }: Opening,
  databaseUrl: string,
): Promise<ServedWebhooks> {
  const { openPostgresWebhookProgress } =
    await import('../../../infra/postgres/webhookProgress.ts');
  const progress = opened.adopt(openPostgresWebhookProgress(databaseUrl), ({ close }) => close());
  return { allowPrivate: config.WEBHOOKS_ALLOW_PRIVATE, progress };
}

/** The sending of one process of several; no part where the projector is not among the services. */
export function openReplicaWebhooks(
  opening: Opening,
  context: Sender & { shown: Shown },
  databaseUrl: string,
): ProcessPart[] {
  const { logger, services } = opening;
  if (!services.includes('projector')) return [];
  const onFailure = (error: unknown, retry_in_ms: number): void =>
    logger.warn({ err: error, retry_in_ms }, 'The database of webhooks is away');
  const acquireLeadership = async (
    signal: AbortSignal,
  ): Promise<WebhookProgressStore | undefined> => {
    const { acquireWebhookLease } = await import('../../../infra/postgres/webhookProgress.ts');
    return acquireWebhookLease({ databaseUrl, signal, onFailure });
  };
  const pausedReason = (): string | undefined => doubtOfAny(context.shown);
  return [webhooksPart(opening, context, { acquireLeadership, pausedReason })];
}
