import { sessionOfAgentNotFound } from '../../../../shared/runs/queueing/loadSessionForRun.ts';
import { sessionBusy } from '../../../../shared/runs/queueing/sessionQueue.ts';
import { idempotencyConflict } from '../../../../shared/requests/idempotency.ts';
import { agentErasedError, sessionErasedError } from '../../../../shared/erasure/errors.ts';
import { webhookNotFound } from '../../../../shared/webhooks/queries.ts';
import { replayNotFoundError, sessionOfReplayError } from '../../../../shared/replays/errors.ts';
import type { Rejection, RejectionCode } from '../../../../shared/domain/rejection.ts';
import type { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import { agentNotFoundError } from '../../../../shared/agents/queries.ts';

/** For what no operation of the API leads to: a defect where it happens. */
const DEFECT = undefined;

/** How a decider's rejection is answered. */
const ANSWERS: Readonly<Record<RejectionCode, (() => TurnlogError) | undefined>> = {
  session_exists: DEFECT,
  session_missing: sessionOfAgentNotFound,
  session_erased: sessionErasedError,
  agent_missing: DEFECT,
  agent_deleted: agentNotFoundError,
  agent_erased: agentErasedError,
  // That there is such a session is not for everybody to know.
  session_of_another_agent: sessionOfAgentNotFound,
  // A run waits for its turn; whatever else has to wait for the end of a turn is asked to come
  // again.
  replay_exists: DEFECT,
  replay_missing: replayNotFoundError,
  replay_ended: DEFECT,
  // A session that a replay made is the replay's alone; a fork of it is anybody's.
  session_of_replay: sessionOfReplayError,
  session_moved: DEFECT,
  turn_open: sessionBusy,
  turn_not_open: DEFECT,
  turn_of_another_run: DEFECT,
  request_differs: idempotencyConflict,
  webhook_exists: DEFECT,
  webhook_missing: webhookNotFound,
  agent_exists: DEFECT,
  account_exists: DEFECT,
  account_missing: DEFECT,
  account_erased: DEFECT,
  key_exists: DEFECT,
  key_unknown: DEFECT,
  retention_invalid: DEFECT,
  account_held: DEFECT,
};

/**
 * The error that a client gets for a rejection; undefined where it is none of the client's doing.
 */
export const answerTo = ({ code }: Rejection): TurnlogError | undefined => ANSWERS[code]?.();
