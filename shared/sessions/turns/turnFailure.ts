import { TurnlogError, type ErrorCode, type RetryAdvice } from '../../lib/errors/turnlogError.ts';
import type { TurnRow } from '../../readModels/tables.ts';
import { INTERRUPTIONS, type Interruption } from './projection.ts';

export const isInterruption = (value: unknown): value is Interruption =>
  typeof value === 'string' && Object.hasOwn(INTERRUPTIONS, value);

/** Why a turn ended without an answer: the same wherever it is shown. */
interface TurnFailure {
  code: string;
  /** One sentence for people. */
  message: string;
  /** Of an interrupted turn; a newer release may record others. */
  reason?: string;
  retry: RetryAdvice;
}

/** The failure of a turn that failed. A retry under the same key gets the recorded failure. */
export const failedTurn = ({ code, message }: { code: string; message: string }): TurnFailure => ({
  code,
  message,
  retry: 'new_key',
});

/** The failure of a turn that was interrupted. A turn that was cancelled must not be run again. */
export const interruptedTurn = (
  reason: Interruption,
  message: string = INTERRUPTIONS[reason],
): TurnFailure => ({
  code: 'turn_interrupted',
  message,
  reason,
  retry: reason === 'cancelled' ? 'never' : 'new_key',
});

/** The failure in a turn's row; null if there is none. */
export function failureOfRow({ status, error }: Pick<TurnRow, 'status' | 'error'>) {
  if (error === null) return null;
  return status === 'interrupted'
    ? interruptedTurn(error.code as Interruption, error.message)
    : failedTurn(error);
}

/** The error of a run whose turn has ended so. */
export const turnFailureError = (
  { code, message, retry }: TurnFailure,
  turn: { session_id: string; turn: number } | undefined,
  options: Omit<NonNullable<ConstructorParameters<typeof TurnlogError>[2]>, 'retry' | 'turn'> = {},
): TurnlogError => new TurnlogError(code as ErrorCode, message, { ...options, retry, turn });
