import { isTurnlogError, TurnlogError } from '../../lib/errors/turnlogError.ts';

/**
 * Why a stream is damaged, as a phrase that follows "it is damaged:", and the revision where the
 * flaw was found.
 */
export interface StreamFlaw {
  reason: string;
  /** Undefined when only the store knows it. */
  revision: number | undefined;
  /** True when the stream is intact but holds an event that only a newer release knows. */
  newer?: true;
}

/** A flaw with its stream and the revisions that can still be read. */
export interface StreamDamage extends StreamFlaw {
  stream: string;
  /** The first and the last revision found; null when there is none. */
  first_revision: number | null;
  last_revision: number | null;
}

const damagedPrefix = (stream: string): string => `The stream ${stream} is damaged: `;

/** `stream_damaged` as a store reports it: the revisions that are left are not known yet. */
export const storeDamageError = (stream: string, reason: string): TurnlogError =>
  new TurnlogError('stream_damaged', `${damagedPrefix(stream)}${reason}.`, {
    details: { stream: { message: 'no revision is found', path: stream } },
  });

/** The reason in a store's own `stream_damaged` message, without its standard beginning. */
export const damageReason = (stream: string, { message }: TurnlogError): string =>
  message.replace(damagedPrefix(stream), '').replace(/\.$/, '');

/**
 * `stream_damaged` with the stream and the remaining revisions in its message and details, and the
 * damage as its cause. `path` is where the client named the stream: `path`, or a JSON pointer into
 * the body.
 */
export function streamDamagedError(damage: StreamDamage, path = 'path'): TurnlogError {
  const { stream, reason, first_revision: first, last_revision: last } = damage;
  const range =
    first === null || last === null
      ? 'no event of it was found'
      : `revisions ${first} to ${last} were found`;
  const message = `${damagedPrefix(stream)}${reason}; ${range}.`;
  return new TurnlogError('stream_damaged', message, {
    details: { stream: { message, path } },
    cause: damage,
  });
}

/**
 * `release_too_old`: the stream is intact, but this release can't append to it. A retry may reach a
 * replica of the newer release.
 */
export const releaseTooOldError = (stream: string, { reason }: StreamFlaw): TurnlogError =>
  new TurnlogError(
    'release_too_old',
    `The stream ${stream} can't be read by this release of Turnlog: ${reason}. Try again: a replica of the newer release may answer.`,
    { retriable: true, retryAfterSeconds: 1 },
  );

/** True for the errors of a stream that this release can't append to, however often it tries. */
export const isUnreadable = (error: unknown): boolean =>
  isTurnlogError(error, 'stream_damaged') || isTurnlogError(error, 'release_too_old');

/**
 * The damage that streamDamagedError stored in an error; undefined for any other error, including a
 * store's own.
 */
export function damageFromError(error: unknown): StreamDamage | undefined {
  const { cause } = isTurnlogError(error, 'stream_damaged') ? error : {};
  return typeof cause === 'object' && cause !== null && 'first_revision' in cause
    ? (cause as StreamDamage)
    : undefined;
}
