import { isHost, type Host } from './connectionString.ts';

/**
 * What a failed call carries: a gRPC status, and trailers of which `exception` names the kind of
 * error.
 */
interface FailedCall extends Error {
  code: number;
  details?: string;
  metadata?: { get(name: string): unknown[] };
}

const CANCELLED = 1;
const UNKNOWN = 2;
const INVALID_ARGUMENT = 3;
const PERMISSION_DENIED = 7;
const UNAVAILABLE = 14;
const INTERNAL = 13;
const UNAUTHENTICATED = 16;

const isFailedCall = (error: unknown): error is FailedCall =>
  error instanceof Error && 'code' in error && typeof error.code === 'number';

const trailer = (error: unknown, name: string): string | undefined => {
  const value = isFailedCall(error) ? error.metadata?.get(name)[0] : undefined;
  return typeof value === 'string' ? value : undefined;
};

/** What the server said, without gRPC's number and name of the status. */
export const saidBy = (error: unknown): string =>
  isFailedCall(error) && error.details
    ? error.details
    : error instanceof Error
      ? error.message
      : String(error);

/** The server refuses an append for want of a right, which is told within a call that goes on. */
export class AccessDenied extends Error {}

/** The node can't serve now: it starts, ends, or has no quorum. Told within a call that goes on. */
export class NotReady extends Error {}

/** Nobody listens there. */
export const isRefused = (error: unknown): boolean => /ECONNREFUSED/.test(saidBy(error));

/** The user or the password is wrong. */
export const isUnauthenticated = (error: unknown): boolean =>
  isFailedCall(error) && error.code === UNAUTHENTICATED;

/** The user lacks a right. */
export const isAccessDenied = (error: unknown): boolean =>
  error instanceof AccessDenied ||
  (isFailedCall(error) && error.code === PERMISSION_DENIED) ||
  trailer(error, 'exception') === 'access-denied';

/** The stream was ended for ever. */
export const isStreamDeleted = (error: unknown): boolean =>
  trailer(error, 'exception') === 'stream-deleted';

/** Where the leader is, as a node says that is not. */
export function leaderNamedBy(error: unknown): Host | undefined {
  const host = {
    address: trailer(error, 'leader-endpoint-host') ?? '',
    port: Number(trailer(error, 'leader-endpoint-port')),
  };
  return trailer(error, 'exception') === 'not-leader' && isHost(host) ? host : undefined;
}

/**
 * True when the node may be gone, or no longer the one to ask: whether it is has to be looked at.
 */
export const makesDoubtful = (error: unknown): boolean =>
  error instanceof NotReady ||
  (isFailedCall(error) && [UNAVAILABLE, CANCELLED, INTERNAL].includes(error.code)) ||
  trailer(error, 'exception') === 'not-leader';

/**
 * True when a server refuses a position at which no record begins. 24 and later say so; 23.10 says
 * only that something went wrong, which a read from the same position tells apart (`Unexpected
 * ReadAllResult`).
 */
export const isInvalidPosition = (error: unknown): boolean =>
  isFailedCall(error) &&
  ((error.code === INVALID_ARGUMENT && /invalid position/i.test(saidBy(error))) ||
    (error.code === UNKNOWN && /Unexpected ReadAllResult/.test(saidBy(error))));

/** True when 23.10 refuses the start of a subscription without a reason. */
export const isUnexplained = (error: unknown): boolean =>
  isFailedCall(error) && error.code === UNKNOWN;
