/** What a failed call carries: a gRPC status, and trailers of which `exception` names the kind of error. */
interface FailedCall {
  code: number;
  metadata?: { get(name: string): unknown[] };
}

const PERMISSION_DENIED = 7;
const UNAUTHENTICATED = 16;

const isFailedCall = (error: unknown): error is FailedCall => error instanceof Error && 'code' in error && typeof error.code === 'number';

const exception = (error: unknown): unknown => (isFailedCall(error) ? error.metadata?.get('exception')[0] : undefined);

/** The server refuses the credentials of an append, which is told within a call that goes on. */
export class AccessDenied extends Error {}

/** The credentials are refused: trying again can't help. */
export const isAccessDenied = (error: unknown): boolean =>
  error instanceof AccessDenied || (isFailedCall(error) && (error.code === PERMISSION_DENIED || error.code === UNAUTHENTICATED)) || exception(error) === 'access-denied';

/** The stream was ended for ever. */
export const isStreamDeleted = (error: unknown): boolean => exception(error) === 'stream-deleted';
