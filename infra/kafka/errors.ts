import { isTurnlogError, TurnlogError } from '../../shared/errors.ts';

/**
 * Protocol errors that say: a newer producer has this transactional id. Newer brokers send the
 * second, which kafkajs 2.2 knows by number only.
 */
const FENCED = /^INVALID_PRODUCER_EPOCH$|^Unknown error code 90$/;

function causesOf(error: unknown): Array<Error & { type?: string }> {
  const causes: Error[] = [];
  for (let cause = error; cause instanceof Error && !causes.includes(cause); cause = cause.cause)
    causes.push(cause);
  return causes;
}

/**
 * True when a call failed with this error of the Kafka protocol, however kafkajs has wrapped it.
 */
export const isProtocolError = (error: unknown, type: string): boolean =>
  causesOf(error).some((cause) => cause.type === type);

/**
 * `publisher_fenced` or `publisher_unavailable` for whatever kafkajs threw; an error of ours as it
 * is.
 */
export function asPublisherError(error: unknown): TurnlogError {
  if (isTurnlogError(error)) return error;
  const causes = causesOf(error);
  if (causes.some(({ type, message }) => FENCED.test(type ?? '') || FENCED.test(message))) {
    return new TurnlogError('publisher_fenced', 'Another relay has taken over.', { cause: error });
  }
  return new TurnlogError(
    'publisher_unavailable',
    `Kafka failed: ${causes[0]?.message ?? String(error)}`,
    { retriable: true, cause: error },
  );
}

/** Runs a call to Kafka. Errors: as asPublisherError has them. */
export async function kafkaCall<Result>(call: () => Promise<Result>): Promise<Result> {
  try {
    return await call();
  } catch (error) {
    throw asPublisherError(error);
  }
}
