import { TurnlogError } from './errors.ts';

/** What everything that is asked of an erased session is answered, to its own account. */
export const sessionErased = (cause?: unknown): TurnlogError =>
  new TurnlogError('session_erased', 'The session was erased.', { cause });

/** The same of an agent. */
export const agentErased = (cause?: unknown): TurnlogError =>
  new TurnlogError('agent_erased', 'The agent was erased.', { cause });
