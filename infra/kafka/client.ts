import { Kafka, logLevel, type Admin, type SASLOptions } from 'kafkajs';
import { retryRequest } from './retryRequest.ts';
import { patchKafkajs } from './kafkajsPatch.ts';

patchKafkajs();

/**
 * `debug`: log lines of the Kafka client, for troubleshooting. `warn`: findings that an operator
 * may want to fix.
 */
export type KafkaLogger = Record<'debug' | 'warn', (fields: object, message: string) => void>;

/**
 * TLS, with the certificate authorities of Node.js, and SASL credentials for the brokers. Neither is
 * used by default.
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
 * The library retries only for as long as a broker takes to restart. Callers have their own backoff
 * and start with a clean state, which the library can't.
 */
export const RETRY = { initialRetryTime: 50, maxRetryTime: 500, retries: 5 };
const REQUEST_TIMEOUT_MS = 15_000;

/** Creates a client of the cluster. Only its producers, consumers and admins connect. */
export const createKafka = ({ brokers, security, clientId, logger }: KafkaClientOptions): Kafka =>
  new Kafka({
    brokers: [...brokers],
    ssl: security?.tls ?? false,
    ...(security?.user && { sasl: security.user as SASLOptions }),
    clientId,
    retry: RETRY,
    requestTimeout: REQUEST_TIMEOUT_MS,
    logLevel: logLevel.WARN,
    // The library logs conditions as `error` that its callers handle, such as a transaction that
    // has to wait a few milliseconds.
    logCreator:
      () =>
      ({ namespace, log }) =>
        logger.debug({ kafka: log }, `${namespace}: ${log.message}`),
  });

/** Runs an administrative request on a separate connection. */
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
