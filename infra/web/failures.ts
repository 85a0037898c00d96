import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';

/** The address is not allowed. `why` completes the sentence "The address …". */
export const webRefusedError = (why: string): TurnlogError =>
  new TurnlogError('web_refused', `The address ${why}.`);

/** The request failed. `why` completes the sentence "The server …". */
export const webFailedError = (why: string, cause?: unknown): TurnlogError =>
  new TurnlogError('web_failed', `The server ${why}.`, { retriable: true, cause });
