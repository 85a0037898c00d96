import type { FairSemaphore } from '../../../shared/lib/concurrency/fairSemaphore.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { WebhookProgress } from '../../../shared/webhooks/webhookProgress.ts';
import type { DeliveryOutcome, WebhookSender } from '../../../shared/webhooks/webhookSender.ts';
import type { DisabledReason } from '../../../shared/webhooks/events.ts';
import type { PublicEvent } from '../../../shared/publicEvents/publicEvent.ts';
import type { WebhookRow } from '../../../shared/readModels/tables.ts';
import type { FollowAccount } from './followAccount.ts';

/** Dependencies shared by the deliveries to all webhooks. */
export interface DeliveryContext {
  follow: FollowAccount;
  send: WebhookSender;
  /** The message of an event, as JSON. */
  bodyOf: (event: PublicEvent) => string;
  /** Limits the messages in flight, fairly across accounts. */
  semaphore: FairSemaphore;
  /** True when the texts of a stream are erased. Throws `store_unavailable`. */
  isErased: (stream: string) => boolean | Promise<boolean>;
  /** Decrypts the address and the secret. Errors: `key_missing`, `store_unavailable`. */
  textsOf: (row: WebhookRow) => Promise<{ url: string; secret: string }>;
  /** Disables the webhook. Errors: those of handle. */
  disable: (row: WebhookRow, reason: DisabledReason) => Promise<void>;
  clock: Clock;
  logger: Pick<Logger, 'info' | 'warn' | 'error'>;
}

/** The delivery of an account's events to one webhook. */
export interface Delivery extends DeliveryContext {
  row: WebhookRow;
  progress: () => WebhookProgress;
  onProgress: (progress: WebhookProgress) => void;
  /**
   * Reports why sending is impossible for a reason other than the receiver; undefined once sending
   * works again.
   */
  onTrouble: (reason: string | undefined) => void;
  /**
   * Aborts `signal` when the webhook was changed, disabled or deleted: the next poll may be some time
   * away.
   */
  stopIfChanged: () => Promise<void>;
  /** Aborts when no further messages may be sent. */
  signal: AbortSignal;
  /** Aborts when messages in flight must be cancelled. */
  cutOff: AbortSignal;
}

/** A message that waits has texts that were erased since the event was read. */
export class MessageOutdated extends Error {
  constructor() {
    super('The texts of a message were erased.');
    this.name = 'MessageOutdated';
  }
}

/** The receiver did not accept a message. */
export class MessageRejected extends Error {
  readonly outcome: Extract<DeliveryOutcome, { accepted: false }>;

  constructor(outcome: Extract<DeliveryOutcome, { accepted: false }>) {
    super(outcome.reason);
    this.name = 'MessageRejected';
    this.outcome = outcome;
  }
}
