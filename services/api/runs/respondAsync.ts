import type { Context } from 'koa';
import type { Static } from 'typebox';
import type { Actor } from '../../../shared/commandHandling/context.ts';
import type { RunInput } from '../../../shared/runs/runRequest.ts';
import { startInBackground } from '../../../shared/runs/startInBackground.ts';
import type { RouteContext } from '../context.ts';
import { preferencesOf, tellApplied } from '../http/preferHeader.ts';
import type { Answer } from '../http/route.ts';
import type { RunResult } from './schemas.ts';
import type { StartedTurn } from '../sessions/turnSchemas.ts';

/** The answer to a run that goes on in the background, or to one that was quick enough. */
type RunAnswer = Answer<Static<typeof RunResult> | Static<typeof StartedTurn>>;

/** True for a run whose client prefers not to wait for its end. */
export const prefersAsync = (ctx: Context): boolean => preferencesOf(ctx).respondAsync;

/**
 * Answers as soon as the turn is recorded, with where its end is told; with its result where the
 * client waits for it and it comes in time. Errors: those of runAgent.
 */
export async function respondAsync(
  api: RouteContext,
  actor: Actor,
  input: RunInput,
  ctx: Context,
): Promise<RunAnswer> {
  const preferences = preferencesOf(ctx);
  const waitMs = (preferences.wait ?? 0) * 1_000;
  const started = await startInBackground(api, actor, { ...input, waitMs });
  tellApplied(ctx, { ...preferences, respondAsync: 'running' in started });
  if ('result' in started) return { data: started.result };
  const { session_id, turn } = started.running;
  ctx.set('location', `/v1/sessions/${session_id}/turns/${turn}`);
  return { data: { session_id, turn, status: 'running' }, status: 202 };
}
