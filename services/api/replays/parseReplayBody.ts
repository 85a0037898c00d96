import type { Static } from 'typebox';
import { requireChecks, requireTurnsOf } from '../../../shared/replays/comparison/checks.ts';
import type { ReplayInput } from '../../../shared/replays/commands.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { findSessionsToReplay } from '../../../shared/replays/turns/sessionsToReplay.ts';
import type { RouteContext } from '../context.ts';
import type { StartReplayBody } from './startSchemas.ts';
import { parseSessionFilter } from '../sessions/parseSessionFilter.ts';

type Body = Static<typeof StartReplayBody>;

/** The checks as they are recorded. Errors: `invalid_request`, those of requireChecks. */
async function serializeChecks(
  { catalogue }: Pick<RouteContext, 'catalogue'>,
  checks: NonNullable<Body['checks']>,
  accountId: string,
): Promise<string> {
  const text = JSON.stringify(checks);
  const most = LIMITS.replays.checksBytes;
  if (Buffer.byteLength(text) > most) {
    const message = `"checks" must not be longer than ${most} bytes as JSON.`;
    throw new TurnlogError('invalid_request', `The request body is not valid: ${message}`, {
      details: { checks: { message, path: '/checks' } },
    });
  }
  await requireChecks(catalogue, checks, accountId);
  return text;
}

/**
 * A replay as it is asked for, with its sessions as they are now. Errors: those of findSessionsToReplay,
 * requireTurnsOf and recordedChecks.
 */
export async function parseReplayBody(
  api: RouteContext,
  accountId: string,
  body: Body,
): Promise<ReplayInput> {
  const { sessions, filter, turns, budget, checks, missing_tools, concurrency, ...given } = body;
  const found = await findSessionsToReplay(api, accountId, {
    sessions,
    filter: filter && parseSessionFilter(filter),
  });
  if (checks) requireTurnsOf(checks, found, turns);
  return {
    ...given,
    sessions: found,
    missing_tools: missing_tools ?? 'stop',
    concurrency: concurrency ?? 1,
    budget_tokens: budget.tokens,
    ...(turns?.from !== undefined && { from_turn: turns.from }),
    ...(turns?.up_to !== undefined && { up_to_turn: turns.up_to }),
    ...(checks && { checks: await serializeChecks(api, checks, accountId) }),
  };
}
