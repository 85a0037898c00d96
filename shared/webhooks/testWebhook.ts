import { TurnlogError } from '../lib/errors/turnlogError.ts';
import { LIMITS } from '../limits.ts';
import { isoTime } from '../ports/clock.ts';
import type { RateLimiter } from '../ports/rateLimiter.ts';
import type { Actor, CommandContext } from '../commandHandling/context.ts';
import { shutdownError } from '../runs/queueing/runsInFlight.ts';
import type { Claim } from '../requests/idempotency.ts';
import { requireOwnWebhook, textsOf } from './queries.ts';
import type { DeliveryAttempt } from './webhookProgress.ts';
import { attemptDelivery, type WebhookTests } from './webhookSender.ts';

/** The type of test messages. It is no type of an event, so no webhook can select it. */
const TEST_TYPE = 'turnlog.webhook.test.v1';

type TestContext = CommandContext & {
  webhooks: { tests: WebhookTests };
  rateLimiter: RateLimiter;
  /** Aborts when the process stops. */
  stopping: AbortSignal;
  /** The `source` of the CloudEvents. */
  eventSource: string;
};

/** Throws `rate_limited`. */
async function limitTests({ rateLimiter }: TestContext, accountId: string): Promise<void> {
  const { testsPerSecond } = LIMITS.webhooks;
  const { allowed } = await rateLimiter.take(`webhook_tests ${accountId}`, testsPerSecond);
  if (allowed) return;
  throw new TurnlogError(
    'rate_limited',
    `An account may send ${testsPerSecond} test message per second. Try again in the next second.`,
    { retriable: true, retryAfterSeconds: 1 },
  );
}

/**
 * Sends a signed test message to the account's webhook once, even if it is disabled. The state of the
 * webhook does not change. Repeated attempts of a request send the same message id. Errors:
 * `webhook_not_found`, `key_missing`, `rate_limited`, `overloaded`, `store_unavailable`.
 */
export async function testWebhook(
  context: TestContext,
  { account_id }: Pick<Actor, 'account_id'>,
  webhookId: string,
  claim?: Claim,
): Promise<DeliveryAttempt> {
  const { clock, webhooks, eventSource: source, stopping: signal } = context;
  const row = await requireOwnWebhook(context, account_id, webhookId);
  await limitTests(context, account_id);
  using _permit = webhooks.tests.permits.acquire({ account_id });
  try {
    const id = claim?.reserved.id ?? context.ids.uuid();
    const body = JSON.stringify({
      specversion: '1.0',
      id,
      type: TEST_TYPE,
      source,
      subject: webhookId,
      time: isoTime(clock.now()),
      datacontenttype: 'application/json',
      accountid: account_id,
      data: { webhook_id: webhookId },
    });
    const message = { ...(await textsOf(context, row)), id, body, signal };
    const sender = { send: webhooks.tests.send, clock };
    return (await attemptDelivery(sender, message, TEST_TYPE)).attempt;
  } catch (error) {
    // The attempt was cut off, and its outcome is not known.
    throw signal.aborted && error === signal.reason ? shutdownError(error) : error;
  }
}
