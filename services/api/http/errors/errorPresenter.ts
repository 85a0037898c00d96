import { Rejection, type RejectionCode } from '../../../../shared/domain/rejection.ts';
import { TurnlogError, type ErrorCode } from '../../../../shared/lib/errors/turnlogError.ts';
import { failureEnvelope } from '../responses/envelope.ts';

/** For a rejection that no operation can cause: it is a defect, and results in 500. */
export const DEFECT = undefined;

/** The HTTP status of an error code, and what the code means to a client. */
export interface ErrorResponse {
  status: number;
  description: string;
  /** True where the failure is logged with its turn, so that the request needs no log line. */
  isLoggedWithTurn?: true;
}

/** The error that a client gets for a rejection. */
export type RejectionResponse = ((rejection: Rejection) => TurnlogError) | typeof DEFECT;

export type ErrorResponses = Readonly<Record<ErrorCode, ErrorResponse>>;
export type RejectionResponses = Readonly<Record<RejectionCode, RejectionResponse>>;

const INTERNAL_MESSAGE = 'Something failed inside the service. Its log has this request id.';

/** Turns errors into responses. Only this assigns HTTP statuses to error codes. */
export interface ErrorPresenter {
  responseOf(code: ErrorCode): ErrorResponse;
  /** Known errors unchanged, rejections as their feature states, all others as `internal_error`. */
  toPublicError(thrown: unknown): TurnlogError;
  present(error: TurnlogError, requestId: string): ReturnType<typeof failureEnvelope>;
}

export function createErrorPresenter({
  errorResponses,
  rejections,
}: {
  errorResponses: ErrorResponses;
  rejections: RejectionResponses;
}): ErrorPresenter {
  const isKnown = (code: string): code is ErrorCode => Object.hasOwn(errorResponses, code);
  return {
    responseOf: (code) => errorResponses[code],
    toPublicError(thrown) {
      const error = (thrown instanceof Rejection && rejections[thrown.code]?.(thrown)) || thrown;
      // A turn that a newer release recorded may have failed with a code unknown to this one.
      const codedError = error instanceof TurnlogError && isKnown(error.code) ? error : undefined;
      if (codedError?.code === 'internal_error') return codedError;
      if (codedError && errorResponses[codedError.code].status !== 500) return codedError;
      const { retry, turn } = error instanceof TurnlogError ? error : {};
      return new TurnlogError('internal_error', INTERNAL_MESSAGE, { retry, turn, cause: error });
    },
    present: (error, requestId) =>
      failureEnvelope(error, requestId, errorResponses[error.code].status),
  };
}
