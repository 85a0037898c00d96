import { join } from 'node:path';
import { openFileWebhookProgress } from '../../../infra/files/webhookProgress.ts';
import { findUnreachable } from '../../../infra/web/guardedFetch.ts';
import { createWebhookSender } from '../../../infra/web/webhookSender.ts';
import { disableFailingWebhook } from '../../../shared/webhooks/changeWebhook.ts';
import type { HandleContext } from '../../../shared/commandHandling/handle.ts';
import { createPermitPool } from '../../../shared/lib/concurrency/capacity.ts';
import { createFairSemaphore } from '../../../shared/lib/concurrency/fairSemaphore.ts';
import type { AccountFeed } from '../../../shared/feed/accountFeed.ts';
import { toCloudEvent } from '../../../shared/publicEvents/cloudEvent.ts';
import type { PublicEvent } from '../../../shared/publicEvents/publicEvent.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { ReadModels } from '../../../shared/ports/readModels.ts';
import { textsOf, type ServedWebhooks } from '../../../shared/webhooks/queries.ts';
import { limitLookups } from '../../../shared/webhooks/webhookUrl.ts';
import type { DisabledReason } from '../../../shared/webhooks/events.ts';
import type { WebhookRow } from '../../../shared/readModels/tables.ts';
import type { ProcessPart } from '../../process/processParts.ts';
import { followFeed } from '../../followers/webhooks/followAccount.ts';
import { startWebhooks, type Webhooks } from '../../followers/webhooks/start.ts';
import type { Opening } from '../opening.ts';
import { followerPart, type ReadModelsParts } from './followerPart.ts';
import type { EmbeddedLocation } from '../logLocation.ts';
import { systemClock } from '../system.ts';

type WebhookContext = HandleContext & {
  readModels: ReadModels;
  feed: AccountFeed;
  readModelsParts: ReadModelsParts;
};

/** Sends webhooks while the process serves and no other process sends them. */
function webhooksPart(
  { config, logger, memory }: Opening,
  context: WebhookContext,
  acquireLeadership: Webhooks['acquireLeadership'],
): ProcessPart {
  const { messages: permits } = LIMITS.webhooks;
  const delivery = {
    follow: followFeed(context.feed, context.store, memory),
    send: createWebhookSender({ allowPrivate: config.WEBHOOKS_ALLOW_PRIVATE }),
    bodyOf: (event: PublicEvent) => JSON.stringify(toCloudEvent(event, config.KAFKA_EVENT_SOURCE)),
    semaphore: createFairSemaphore('webhook_messages', { permits, bytes: Infinity }),
    isErased: (stream: string) => context.store.keys.isErased(stream),
    textsOf: (row: WebhookRow) => textsOf(context, row),
    disable: (row: WebhookRow, reason: DisabledReason) =>
      disableFailingWebhook(context, row, reason),
    clock: systemClock,
    logger,
  };
  const { readModels, readModelsParts } = context;
  return followerPart('webhooks', readModelsParts, (pausedReason) => {
    const webhooks = startWebhooks({ delivery, readModels, acquireLeadership, pausedReason });
    return { health: () => ({ webhooks: webhooks.health() }), close: webhooks.close };
  });
}

function servedWebhooks({ config }: Opening, progress: ServedWebhooks['progress']): ServedWebhooks {
  const allowPrivate = config.WEBHOOKS_ALLOW_PRIVATE;
  const { tests } = LIMITS.webhooks;
  const permits = createPermitPool('webhook_tests', { permits: tests, bytes: Infinity });
  return {
    allowPrivate,
    findUnreachable: limitLookups((url) => findUnreachable(url, { allowPrivate })),
    tests: { send: createWebhookSender({ allowPrivate }), permits },
    progress,
  };
}

/** Webhooks of an embedded service, the only process with its data folder. */
export function openEmbeddedWebhooks(
  opening: Opening,
  context: WebhookContext,
  { dataFolder }: EmbeddedLocation,
): { part: ProcessPart; served: ServedWebhooks } {
  const progress = openFileWebhookProgress(join(dataFolder, 'webhook-progress'));
  return {
    part: webhooksPart(opening, context, async () => progress),
    served: servedWebhooks(opening, progress),
  };
}

/** Opens the parts of webhooks that the API of a replica needs. */
export async function openServedWebhooks(
  opening: Opening,
  databaseUrl: string,
): Promise<ServedWebhooks> {
  const { openPostgresWebhookProgress } =
    await import('../../../infra/postgres/webhookProgress.ts');
  const progress = opening.opened.adopt(openPostgresWebhookProgress(databaseUrl), ({ close }) =>
    close(),
  );
  return servedWebhooks(opening, progress);
}

/** The webhooks part of a replica; empty where the process does not run the projector service. */
export function openReplicaWebhooks(
  opening: Opening,
  context: WebhookContext,
  databaseUrl: string,
): ProcessPart[] {
  const { logger, services } = opening;
  if (!services.includes('projector')) return [];
  const onFailure = (error: unknown, retry_in_ms: number): void =>
    logger.warn({ err: error, retry_in_ms }, 'the database of the webhook lease is unavailable');
  const part = webhooksPart(opening, context, async (signal) => {
    const { acquireWebhookLease } = await import('../../../infra/postgres/webhookProgress.ts');
    return acquireWebhookLease({ databaseUrl, signal, onFailure });
  });
  return [part];
}
