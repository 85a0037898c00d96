import { isTurnlogError, TurnlogError } from '../../lib/errors/turnlogError.ts';

/**
 * Why a stream is not whole, in words that follow "it is damaged:", and the revision at which that
 * shows.
 */
export interface StreamFlaw {
  reason: string;
  /** Undefined where only the store knows it. */
  revision: number | undefined;
  /** True where the stream is whole, and holds an event that only a newer release knows. */
  newer?: true;
}

/** A flaw with its stream and what a reader gets of it. */
export interface StreamDamage extends StreamFlaw {
  stream: string;
  /** The first and the last revision that were found; null when none was. */
  first_revision: number | null;
  last_revision: number | null;
}

const damagedPrefix = (stream: string): string => `The stream ${stream} is damaged: `;

/**
 * Why a store says that a stream is damaged, in words that follow those that begin every such
 * message.
 */
export const damageReason = (stream: string, { message }: TurnlogError): string =>
  message.replace(damagedPrefix(stream), '').replace(/\.$/, '');

/**
 * `stream_damaged`, whose message and details name the stream and what was found of it; the damage
 * itself is the cause.
 * `path` says where the client named the stream: `path`, or a JSON pointer into its body.
 */
export function streamDamagedError(damage: StreamDamage, path = 'path'): TurnlogError {
  const { stream, reason, first_revision: first, last_revision: last } = damage;
  const found =
    first === null || last === null
      ? 'no event of it was found'
      : `revisions ${first} to ${last} were found`;
  const message = `${damagedPrefix(stream)}${reason}; ${found}.`;
  return new TurnlogError('stream_damaged', message, {
    details: { stream: { message, path } },
    cause: damage,
  });
}

/**
 * `release_too_old`: the stream is whole, and can't be gone on with here. Tried again, the request
 * may meet a replica of the newer release.
 */
export const releaseTooOldError = (stream: string, { reason }: StreamFlaw): TurnlogError =>
  new TurnlogError(
    'release_too_old',
    `The stream ${stream} can't be read by this release of Turnlog: ${reason}. Try again: a replica of the newer release may answer.`,
    { retriable: true, retryAfterSeconds: 1 },
  );

/** True for the error of a stream that this release can add nothing to, however often it tries. */
export const isUnreadable = (error: unknown): boolean =>
  isTurnlogError(error, 'stream_damaged') || isTurnlogError(error, 'release_too_old');

/**
 * The damage that a `stream_damaged` of `streamDamaged` tells of; undefined for any other error, a
 * store's own included.
 */
export function damageFromError(error: unknown): StreamDamage | undefined {
  const { cause } = isTurnlogError(error, 'stream_damaged') ? error : {};
  return typeof cause === 'object' && cause !== null && 'first_revision' in cause
    ? (cause as StreamDamage)
    : undefined;
}
