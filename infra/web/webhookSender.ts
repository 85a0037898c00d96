import { Webhook } from 'standardwebhooks';
import { isTurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../shared/limits.ts';
import type {
  DeliveryOutcome,
  WebhookMessage,
  WebhookSender,
} from '../../shared/webhooks/webhookSender.ts';
import { createGuardedFetch, type GuardOptions } from './guardedFetch.ts';
import type { ResponseHead } from './httpRequest.ts';

const GONE = 410;
const SECOND_MS = 1_000;

/** In seconds, or until a date (RFC 9110 §10.2.3); undefined for what is neither. */
function retryAfterMs(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  const ms = /^\d{1,9}$/.test(header)
    ? Number(header) * SECOND_MS
    : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

function outcomeOf({ status, headers }: ResponseHead): DeliveryOutcome {
  if (status >= 200 && status < 300) return { accepted: true, status };
  const reason = `The receiver answered ${status}.`;
  if (status === GONE) return { accepted: false, status, reason, gone: true };
  const wait = [429, 503].includes(status) ? retryAfterMs(headers['retry-after']) : undefined;
  return { accepted: false, status, reason, ...(wait !== undefined && { retryAfterMs: wait }) };
}

/** Each attempt is signed at its own time: receivers refuse what is older than some minutes. */
function headersOf({ id, secret, body }: WebhookMessage): Record<string, string> {
  const at = new Date();
  return {
    'content-type': 'application/json; charset=utf-8',
    'user-agent': 'Turnlog',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / SECOND_MS)),
    'webhook-signature': new Webhook(secret).sign(id, at, body),
  };
}

/**
 * Sends messages as Standard Webhooks has them
 * (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md), to
 * checked addresses only, and follows no redirect.
 */
export function createWebhookSender(
  options: Pick<GuardOptions, 'allowPrivate' | 'resolve' | 'ca'> & { answerMs?: number },
): WebhookSender {
  const { answerMs: ms = LIMITS.webhooks.answerMs, ...guard } = options;
  const { answerBytes: bytes } = LIMITS.webhooks;
  const post = createGuardedFetch({ ...guard, redirects: 0, bytes, ms });
  return async (message) => {
    const { url, body, signal } = message;
    const headers = headersOf(message);
    let outcome: DeliveryOutcome | undefined;
    const onHead = (head: ResponseHead): void => void (outcome = outcomeOf(head));
    try {
      return outcomeOf(await post({ url, method: 'POST', headers, body, onHead }, signal));
    } catch (error) {
      // The status is the answer, although the body has no end or can't be decoded.
      if (outcome) return outcome;
      signal.throwIfAborted();
      if (!isTurnlogError(error)) throw error;
      return { accepted: false, reason: error.message };
    }
  };
}
