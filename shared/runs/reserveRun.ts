import type { Reserved } from '../requests/events.ts';
import { sessionStream } from '../eventlog/streams.ts';
import type { Actor } from '../commandHandling/context.ts';
import type { RunContext } from './context.ts';
import type { RunInput } from './runRequest.ts';
import { requestOf } from './runAgent.ts';

/**
 * What the first try of a run fixes: the id of its new session, or where in the session its turn is
 * looked for. Errors: those of a run that come before it waits.
 */
export async function reserveRun(
  context: RunContext,
  actor: Actor,
  input: RunInput,
): Promise<Reserved> {
  const { session_id, new_session } = await requestOf(context, actor, input);
  if (new_session) return { id: session_id };
  const [last] = await context.store.readStream(sessionStream(session_id), {
    direction: 'backwards',
    limit: 1,
  });
  return last ? { revision: last.revision } : {};
}
