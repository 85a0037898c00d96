import type { Static } from 'typebox';
import { requireChecks, requireTurnsOf } from '../../../shared/replays/comparison/checks.ts';
import type { ReplayInput } from '../../../shared/replays/commands.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { findSessionsToReplay } from '../../../shared/replays/turns/sessionsToReplay.ts';
import type { RouteContext } from '../context.ts';
import type { StartReplayBody } from './schemas.ts';
import { parseSessionFilter } from '../sessions/parseSessionFilter.ts';

type Body = Static<typeof StartReplayBody>;

/** Serializes the checks as they are recorded. */
async function serializeChecks(
  { catalogue }: Pick<RouteContext, 'catalogue'>,
  checks: NonNullable<Body['checks']>,
  accountId: string,
): Promise<string> {
  const text = JSON.stringify(checks);
  const maxBytes = LIMITS.replays.checksBytes;
  if (Buffer.byteLength(text) > maxBytes) {
    const message = `"checks" must not be longer than ${maxBytes} bytes as JSON.`;
    throw new TurnlogError('invalid_request', `The request body is not valid: ${message}`, {
      details: { checks: { message, path: '/checks' } },
    });
  }
  await requireChecks(catalogue, checks, accountId);
  return text;
}

/** Parses a request for a replay, and resolves its sessions. */
export async function parseReplayBody(
  api: RouteContext,
  accountId: string,
  body: Body,
): Promise<ReplayInput> {
  const { sessions, filter, turns, checks, budget, ...settings } = body;
  const replayedSessions = await findSessionsToReplay(api, accountId, {
    sessions,
    filter: filter && parseSessionFilter(filter),
  });
  if (checks) requireTurnsOf(checks, replayedSessions, turns);
  return {
    ...settings,
    sessions: replayedSessions,
    tools: settings.tools ?? 'recorded',
    missing_tools: settings.missing_tools ?? 'stop',
    concurrency: settings.concurrency ?? 1,
    budget_tokens: budget?.tokens ?? LIMITS.replays.defaultBudgetTokens,
    ...(turns?.from !== undefined && { from_turn: turns.from }),
    ...(turns?.up_to !== undefined && { up_to_turn: turns.up_to }),
    ...(checks && { checks: await serializeChecks(api, checks, accountId) }),
  };
}
