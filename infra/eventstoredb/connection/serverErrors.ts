import { isValidHost, type Host } from './connectionString.ts';

/** A failed call: a gRPC status, and trailers. The trailer `exception` names the kind of error. */
interface FailedCall extends Error {
  code: number;
  details?: string;
  metadata?: { get(name: string): unknown[] };
}

const CANCELLED = 1;
const UNKNOWN = 2;
const INVALID_ARGUMENT = 3;
const PERMISSION_DENIED = 7;
const INTERNAL = 13;
const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;

const isFailedCall = (error: unknown): error is FailedCall =>
  error instanceof Error && 'code' in error && typeof error.code === 'number';

const trailer = (error: unknown, name: string): string | undefined => {
  const value = isFailedCall(error) ? error.metadata?.get(name)[0] : undefined;
  return typeof value === 'string' ? value : undefined;
};

/** The server's message, without the gRPC status. */
export const serverMessage = (error: unknown): string =>
  isFailedCall(error) && error.details
    ? error.details
    : error instanceof Error
      ? error.message
      : String(error);

/** The server denies one append of a call because a right is missing. The call stays open. */
export class AccessDeniedError extends Error {}

/** The node can't serve now: it starts, stops, or has no quorum. The call stays open. */
export class NotReadyError extends Error {}

/** No process listens on the port. */
export const isConnectionRefused = (error: unknown): boolean =>
  /ECONNREFUSED/.test(serverMessage(error));

/** The user or the password is wrong. */
export const isUnauthenticated = (error: unknown): boolean =>
  isFailedCall(error) && error.code === UNAUTHENTICATED;

/** The user lacks a right. */
export const isAccessDenied = (error: unknown): boolean =>
  error instanceof AccessDeniedError ||
  (isFailedCall(error) && error.code === PERMISSION_DENIED) ||
  trailer(error, 'exception') === 'access-denied';

/** The stream was tombstoned. */
export const isStreamTombstoned = (error: unknown): boolean =>
  trailer(error, 'exception') === 'stream-deleted';

/** The leader that a "not leader" error names. */
export function leaderFromError(error: unknown): Host | undefined {
  const host = {
    address: trailer(error, 'leader-endpoint-host') ?? '',
    port: Number(trailer(error, 'leader-endpoint-port')),
  };
  return trailer(error, 'exception') === 'not-leader' && isValidHost(host) ? host : undefined;
}

/** Whether the error suggests that the node is down or is no longer the leader. */
export const suggestsNodeFailure = (error: unknown): boolean =>
  error instanceof NotReadyError ||
  (isFailedCall(error) && [UNAVAILABLE, CANCELLED, INTERNAL].includes(error.code)) ||
  trailer(error, 'exception') === 'not-leader';

/**
 * Whether the server rejects a position at which no record begins. Servers from 24 say so. A 23.10
 * server reports an unknown error to a subscription, but `Unexpected ReadAllResult` to a read.
 */
export const isInvalidPosition = (error: unknown): boolean =>
  isFailedCall(error) &&
  ((error.code === INVALID_ARGUMENT && /invalid position/i.test(serverMessage(error))) ||
    (error.code === UNKNOWN && /Unexpected ReadAllResult/.test(serverMessage(error))));

/** Whether the server gives no reason, as 23.10 does for an invalid start of a subscription. */
export const isUnknownError = (error: unknown): boolean =>
  isFailedCall(error) && error.code === UNKNOWN;
