import type { FairSemaphore } from '../../../shared/lib/concurrency/fairSemaphore.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { WebhookProgress } from '../../../shared/webhooks/webhookProgress.ts';
import type { Delivered, WebhookSender } from '../../../shared/webhooks/webhookSender.ts';
import type { DisabledReason } from '../../../shared/webhooks/events.ts';
import type { PublicEvent } from '../../../shared/publicEvents/publicEvent.ts';
import type { WebhookRow } from '../../../shared/readModels/tables.ts';
import type { FollowAccount } from './follow.ts';

/** What all webhooks are sent with. */
export interface Sending {
  follow: FollowAccount;
  send: WebhookSender;
  /** The message of an event, as JSON. */
  bodyOf: (event: PublicEvent) => string;
  /** Messages on their way; the accounts take turns. */
  line: FairSemaphore;
  /** Address and secret. Errors: `key_missing`, `store_unavailable`. */
  textsOf: (row: WebhookRow) => Promise<{ url: string; secret: string }>;
  /** Errors: those of a command. */
  giveUp: (row: WebhookRow, reason: DisabledReason) => Promise<void>;
  clock: Clock;
  logger: Pick<Logger, 'info' | 'warn' | 'error'>;
}

/** One webhook, and how far it is. */
export interface Lane extends Sending {
  row: WebhookRow;
  progress: () => WebhookProgress;
  onProgress: (progress: WebhookProgress) => void;
  /** Why it can't be sent now, for a reason that is not the receiver's; undefined once it can. */
  onTrouble: (reason: string | undefined) => void;
  /** Ids of events that were taken, beyond the cursor. */
  taken: Set<string>;
  /** Aborts when nothing new is to be begun. */
  signal: AbortSignal;
  /** Aborts when what is on its way is to be cut off. */
  cut: AbortSignal;
}

/** The receiver did not take a message. */
export class NotTaken extends Error {
  readonly outcome: Extract<Delivered, { taken: false }>;

  constructor(outcome: Extract<Delivered, { taken: false }>) {
    super(outcome.reason);
    this.name = 'NotTaken';
    this.outcome = outcome;
  }
}
