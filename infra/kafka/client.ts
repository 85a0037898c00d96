import { Kafka, logLevel, type Admin, type SASLOptions } from 'kafkajs';
import { retryRequest } from './retryRequest.ts';
import { createRequire } from 'node:module';

/** What this file knows of the library's queue of requests to one broker. */
interface RequestQueue {
  pending: readonly unknown[];
  /** Until when the broker wants to be left alone, as of `Date.now()`; -1 if it never did. */
  throttledUntil: number;
  scheduleCheckPendingRequests(): void;
}

const { prototype } = createRequire(import.meta.url)('kafkajs/src/network/requestQueue') as {
  prototype: RequestQueue;
};

/**
 * kafkajs 2.2.4 sets a timer after every answer, also where no request is pending: with a negative
 * time then, of which Node.js warns on standard error. Without a pending request there is nothing
 * to check later: whatever is sent next looks by itself whether it may go. For the whole process.
 */
function patchIdleTimers(): void {
  const schedule = prototype.scheduleCheckPendingRequests;
  prototype.scheduleCheckPendingRequests = function scheduleWherePending(this: RequestQueue) {
    if (this.pending.length > 0) schedule.call(this);
  };
}

patchIdleTimers();

/**
 * `debug`: what the Kafka client says of its own doings; only for somebody who looks for a fault.
 * `warn`: what an operator may want to change.
 */
export type KafkaLogger = Record<'debug' | 'warn', (fields: object, message: string) => void>;

/**
 * How the brokers are spoken to: over TLS, which trusts what Node.js trusts, and as whom (SASL). In
 * the clear and as nobody by default.
 */
export interface KafkaSecurity {
  tls: boolean;
  user?: {
    mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512';
    username: string;
    password: string;
  };
}

interface KafkaClientOptions {
  brokers: readonly string[];
  security?: KafkaSecurity | undefined;
  clientId: string;
  logger: Pick<KafkaLogger, 'debug'>;
}

/**
 * Longer than a broker's restart is not worth waiting inside the library: whoever calls has a
 * back-off of its own and begins with a clean state, which the library can't.
 */
export const RETRY = { initialRetryTime: 50, maxRetryTime: 500, retries: 5 };
const REQUEST_TIMEOUT_MS = 15_000;

/**
 * A client of the cluster. It connects only when a producer, consumer or admin made from it does.
 */
export const createKafka = ({ brokers, security, clientId, logger }: KafkaClientOptions): Kafka =>
  new Kafka({
    brokers: [...brokers],
    ssl: security?.tls ?? false,
    ...(security?.user && { sasl: security.user as SASLOptions }),
    clientId,
    retry: RETRY,
    requestTimeout: REQUEST_TIMEOUT_MS,
    logLevel: logLevel.WARN,
    // At `error` the library reports what its callers handle, such as a transaction that has to
    // wait a few milliseconds.
    logCreator:
      () =>
      ({ namespace, log }) =>
        logger.debug({ kafka: log }, `${namespace}: ${log.message}`),
  });

/** Runs one piece of administration on a connection of its own. */
export async function withAdmin<Result>(
  kafka: Kafka,
  work: (admin: Admin) => Promise<Result>,
): Promise<Result> {
  const admin = kafka.admin();
  try {
    await retryRequest(() => admin.connect());
    return await work(admin);
  } finally {
    await admin.disconnect();
  }
}
