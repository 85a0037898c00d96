import { isTurnlogError, TurnlogError } from '../../errors.ts';
import { asDamage } from '../../eventlog/readWhole.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { untilWhole } from '../../eventlog/untilWhole.ts';
import type { Bounds } from '../../pause.ts';
import { eventsGone, NEW_SESSION, type LoadedSession } from '../loadSession.ts';
import type { RunContext } from './context.ts';
import type { RunRequest } from './request.ts';
import { newestThatFit } from './contextWindow.ts';
import { recallSession } from './recallSession.ts';

/** As much of a run's request as tells its session. */
interface SessionOfRun extends Pick<RunRequest, 'session_id' | 'new_session'> {
  actor: Pick<RunRequest['actor'], 'account_id'>;
  agent: Pick<RunRequest['agent'], 'agent_id'>;
}

export const sessionNotFound = (): TurnlogError =>
  new TurnlogError('session_not_found', 'There is no such session of this agent.');

/**
 * Whether the read models show this actor the session, with this agent. Asked where the log does
 * not tell.
 */
async function isShown(
  { readModels }: Pick<RunContext, 'readModels'>,
  { actor, agent, session_id }: SessionOfRun,
): Promise<boolean> {
  const row = await readModels.findSession(session_id);
  return row?.account_id === actor.account_id && row.agent_id === agent.agent_id;
}

/**
 * The session that a run goes on with, as far as `tokens` of it fit the prompt.
 * Errors: `session_not_found`, `stream_damaged` (noted), also for one that the read models show and
 * the log does not for some seconds, `store_unavailable` also where `bounds` end that sooner, the
 * signal's reason.
 */
export async function sessionOfRun(
  context: RunContext,
  request: SessionOfRun,
  tokens: number,
  bounds: Bounds,
): Promise<LoadedSession> {
  const { session_id } = request;
  if (request.new_session) return NEW_SESSION;
  const { store, damaged, budget, sessions } = context;
  const look = (): Promise<LoadedSession> =>
    recallSession({ store, damaged, memory: sessions.memory }, session_id, (turns) =>
      newestThatFit(budget, tokens, session_id, turns),
    );
  let loaded = await look();
  if (eventsGone(loaded)) {
    if (!(await isShown(context, request))) throw sessionNotFound();
    loaded = await untilWhole(
      context,
      sessionStream(session_id),
      { look, missing: eventsGone },
      bounds,
    );
  }
  if (loaded.account_id !== request.actor.account_id) throw sessionNotFound();
  return loaded;
}

/**
 * The error that a run answers: `stream_damaged` only to whom the session belongs. For anybody else
 * it does not exist, whatever its state.
 */
export async function damagedForClient(
  context: RunContext,
  request: SessionOfRun,
  error: unknown,
): Promise<unknown> {
  if (!isTurnlogError(error, 'stream_damaged')) return error;
  const damaged = await asDamage(context, sessionStream(request.session_id), error, '/session_id');
  return request.new_session || (await isShown(context, request)) ? damaged : sessionNotFound();
}
