import { isTurnlogError, TurnlogError } from '../../shared/lib/errors/turnlogError.ts';

/**
 * Protocol errors for a transactional id that a newer producer uses. Newer brokers send the second,
 * which kafkajs 2.2 knows by number only.
 */
const FENCED = /^INVALID_PRODUCER_EPOCH$|^Unknown error code 90$/;

/** The subject of a call, if the caller knows it; Kafka's own errors don't name it. */
interface CallSubject {
  topic?: string;
  transactionalId?: string;
  /** Describes the message: event and size. */
  message?: string;
}

type Cause = Error & { type?: string; retriable?: boolean; errors?: Error[] };

function causesOf(error: unknown): Cause[] {
  const causes: Cause[] = [];
  for (let cause = error; cause instanceof Error && !causes.includes(cause); cause = cause.cause)
    causes.push(cause);
  // A request to create several topics fails with several errors.
  return causes.flatMap((cause) => [cause, ...(cause.errors ?? [])]);
}

/**
 * True when a call failed with this error of the Kafka protocol, however kafkajs has wrapped it.
 */
export const isProtocolError = (error: unknown, type: string): boolean =>
  causesOf(error).some((cause) => cause.type === type);

const LOST_CONNECTION = new Set([
  'KafkaJSConnectionClosedError',
  'KafkaJSConnectionError',
  'KafkaJSGroupCoordinatorNotFound',
]);

/**
 * Returns true when the same request may succeed a moment later: the connection was lost, or the broker
 * says so. A request without a response is not transient; its connection may be dead.
 */
export const isTransient = (error: unknown): boolean =>
  causesOf(error).some(
    ({ name, type, retriable, message }) =>
      LOST_CONNECTION.has(name) ||
      // kafkajs fails like this when no broker has returned metadata.
      (name === 'TypeError' && message.includes("'topicMetadata'")) ||
      (type !== undefined && retriable === true),
  );

const topicOf = ({ topic }: CallSubject): string =>
  topic === undefined ? 'one of the topics' : `the topic ${topic}`;

/** The error of a publisher whose transactional id another publisher has taken over. */
export const fencedError = (cause?: unknown): TurnlogError =>
  new TurnlogError('publisher_fenced', 'Another relay has taken over.', { cause });

/** Advice for operators, by protocol error. */
const OPERATOR_ADVICE: Readonly<Record<string, (subject: CallSubject) => string>> = {
  TOPIC_AUTHORIZATION_FAILED: (subject) =>
    `The relay has no right to use ${topicOf(subject)}: grant it Describe, DescribeConfigs and Write, Read on the checkpoint topic and after a log was restored on all, and Create where it is to make it.`,
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED: ({ transactionalId }) =>
    `The relay has no right to use the transactional id ${transactionalId}: grant it Describe and Write.`,
  GROUP_AUTHORIZATION_FAILED: ({ transactionalId }) =>
    `The relay has no right to use the groups whose names begin with ${transactionalId}.reader: grant it Read, Describe and Delete on that prefix.`,
  CLUSTER_AUTHORIZATION_FAILED: () =>
    'The relay has no right on the cluster: grant it Create, or make the topics yourself, and IdempotentWrite where brokers are older than Kafka 2.8.',
  INVALID_REPLICATION_FACTOR: (subject) =>
    `The cluster can't create ${topicOf(subject)}: its default.replication.factor is larger than the number of its brokers. Change it, or make the topic yourself.`,
  POLICY_VIOLATION: (subject) =>
    `The cluster's policy does not let ${topicOf(subject)} be created as the relay would: make it yourself.`,
};

/** Reasons that are transient or fixed in the cluster while the relay retries, by protocol error or kafkajs name. */
const TRANSIENT_REASONS: Readonly<Record<string, (subject: CallSubject) => string>> = {
  UNKNOWN_TOPIC_OR_PARTITION: (subject) =>
    `Kafka does not know ${topicOf(subject)} (or the relay may not see it).`,
  NOT_ENOUGH_REPLICAS: (subject) =>
    `Fewer replicas of ${topicOf(subject)} are in sync than its min.insync.replicas wants.`,
  GROUP_COORDINATOR_NOT_AVAILABLE: () =>
    'The cluster has no coordinator yet. Where it never gets one, it has fewer brokers than transaction.state.log.replication.factor or offsets.topic.replication.factor.',
  // kafkajs does not pass on the brokers' responses.
  KafkaJSGroupCoordinatorNotFound: ({ transactionalId }) =>
    `No broker names a coordinator: the cluster has none yet, or the relay has no right to see it: grant it Describe on the transactional id ${transactionalId} and on the groups whose names begin with ${transactionalId}.reader.`,
  MESSAGE_TOO_LARGE: (subject) =>
    `Kafka refuses a message as too large for ${topicOf(subject)}${subject.message ? ` (${subject.message})` : ''}.`,
};

/**
 * Maps kafkajs errors to `publisher_fenced`, `configuration_invalid` (with what an operator has to
 * change) or `publisher_unavailable`. TurnlogErrors pass unchanged.
 */
export function toPublisherError(error: unknown, subject: CallSubject = {}): TurnlogError {
  if (isTurnlogError(error)) return error;
  const causes = causesOf(error);
  if (causes.some(({ type, message }) => FENCED.test(type ?? '') || FENCED.test(message)))
    return fencedError(error);
  const typeIn = (messages: typeof OPERATOR_ADVICE): string | undefined =>
    causes.flatMap(({ type, name }) => [type ?? '', name]).find((kind) => kind in messages);
  const operatorCode = typeIn(OPERATOR_ADVICE);
  if (operatorCode !== undefined)
    return new TurnlogError('configuration_invalid', OPERATOR_ADVICE[operatorCode]!(subject), {
      cause: error,
    });
  const kafkaMessage = causes[0]?.message ?? String(error);
  const transientCode = typeIn(TRANSIENT_REASONS);
  const sentence =
    transientCode === undefined
      ? `Kafka failed${subject.topic === undefined ? '' : ` at ${topicOf(subject)}`}: ${kafkaMessage}`
      : `${TRANSIENT_REASONS[transientCode]!(subject)} Kafka says: ${kafkaMessage}`;
  return new TurnlogError('publisher_unavailable', sentence, { retriable: true, cause: error });
}

/** Runs a call to Kafka, with errors as `toPublisherError` maps them. */
export async function kafkaCall<Result>(
  call: () => Promise<Result>,
  subject: CallSubject = {},
): Promise<Result> {
  try {
    return await call();
  } catch (error) {
    throw toPublisherError(error, subject);
  }
}
