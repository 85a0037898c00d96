import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';

/** The address must not be asked; `why` goes on from "The address". */
export const webRefused = (why: string): TurnlogError =>
  new TurnlogError('web_refused', `The address ${why}.`);

/** The server could not be asked, or its answer is not taken; `why` goes on from "The server". */
export const webFailed = (why: string, cause?: unknown): TurnlogError =>
  new TurnlogError('web_failed', `The server ${why}.`, { retriable: true, cause });
