import { TurnlogError } from '../lib/errors/turnlogError.ts';

/** The error of every request about an erased session of the caller's account. */
export const sessionErasedError = (cause?: unknown): TurnlogError =>
  new TurnlogError('session_erased', 'The session was erased.', { cause });

/** The error of a request that needs the turns a fork shares with an erased session. */
export const originErasedError = (cause?: unknown): TurnlogError =>
  new TurnlogError(
    'origin_erased',
    'The session that it was forked from was erased, and the turns that it shared with it are gone.',
    { cause },
  );

/** The error of every request about an erased agent of the caller's account. */
export const agentErasedError = (cause?: unknown): TurnlogError =>
  new TurnlogError('agent_erased', 'The agent was erased.', { cause });

/** The error of an erasure that retention or a hold forbids. */
export const erasureRefusedError = (message: string): TurnlogError =>
  new TurnlogError('erasure_refused', message);
