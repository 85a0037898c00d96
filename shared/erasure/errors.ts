import { TurnlogError } from '../lib/errors/turnlogError.ts';

/** What everything that is asked of an erased session is answered, to its own account. */
export const sessionErasedError = (cause?: unknown): TurnlogError =>
  new TurnlogError('session_erased', 'The session was erased.', { cause });

/** What is answered where the turns are needed that a fork shares with an erased session. */
export const originErasedError = (cause?: unknown): TurnlogError =>
  new TurnlogError(
    'origin_erased',
    'The session that it was forked from was erased, and the turns that it shared with it are gone.',
    { cause },
  );

/** The same of an agent. */
export const agentErasedError = (cause?: unknown): TurnlogError =>
  new TurnlogError('agent_erased', 'The agent was erased.', { cause });
