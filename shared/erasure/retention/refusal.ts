import { TurnlogError } from '../../lib/errors/turnlogError.ts';

/** The error of an erasure that retention or a hold forbids. */
export const erasureRefusedError = (message: string): TurnlogError =>
  new TurnlogError('erasure_refused', message);
