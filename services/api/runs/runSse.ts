import type { Context } from 'koa';
import type { Actor } from '../../../shared/commandHandling/context.ts';
import type { RunInput } from '../../../shared/runs/runRequest.ts';
import { startRun } from '../../../shared/runs/runAgent.ts';
import { START_OF_OUTPUT } from '../../../shared/sessions/turns/turnOutputPosition.ts';
import type { RecordedTurnOutcome } from '../../../shared/sessions/turns/recordedTurn.ts';
import type { RouteContext } from '../context.ts';
import { sendEventStream } from '../http/responses/sse.ts';
import { acquireStream, startedEvent, turnSse } from '../sessions/turnSse.ts';

/** Whether the client would rather have events than JSON. */
export const prefersSse = (ctx: Context): boolean =>
  ctx.get('accept').toLowerCase().includes('text/event-stream') &&
  ctx.accepts('application/json', 'text/event-stream') === 'text/event-stream';

/**
 * Begins a run and answers with what its turn puts out, as it comes. What goes wrong before the turn
 * has begun is an answer like any other. Errors: those of beginRun, `rate_limited` and `overloaded`
 * where too many streams are open.
 */
export async function runSse(
  api: RouteContext,
  actor: Actor,
  input: RunInput,
  ctx: Context,
): Promise<undefined> {
  const { account_id } = actor;
  acquireStream(api, account_id, ctx);
  const { session_id, turn, result } = await startRun(api, actor, { ...input, deltas: true });
  const subject = { account_id, session_id, turn };
  const end = result.then(
    (data): RecordedTurnOutcome => ({ result: data }),
    (error: unknown): RecordedTurnOutcome => {
      const { code, message } = api.errors.toPublicError(error);
      return { failed: { code, message } };
    },
  );
  sendEventStream(ctx, async function* (signal) {
    yield startedEvent(subject);
    yield* turnSse(api, { subject, after: START_OF_OUTPUT, ended: end }, ctx, signal);
  });
}
