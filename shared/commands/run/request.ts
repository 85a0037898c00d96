import type { AgentRow } from '../../readModels/tables.ts';
import type { Actor } from '../context.ts';
import type { Claim } from '../idempotency/claim.ts';

/** What a client asks for. */
export interface RunInput {
  agent_id: string;
  input: string;
  /** A new session when absent. */
  session_id?: string;
  /** Whether somebody wants the text as it comes: only then the model is asked for a stream. */
  deltas?: boolean;
  /** Of a request that may come again. */
  claim?: Claim | undefined;
}

/** The same with what was found for it; it goes through the whole run as it is. */
export interface RunRequest extends RunInput {
  actor: Actor;
  agent: AgentRow;
  session_id: string;
  new_session: boolean;
}
