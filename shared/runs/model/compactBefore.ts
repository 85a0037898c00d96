import type { RunContext } from '../context.ts';
import { compact, compactWhereFull, type Before } from './compaction.ts';
import type { RunRequest } from '../runRequest.ts';
import { sessionOfRun, type LoadBounds } from '../queueing/acquireSession.ts';

/**
 * Sums up older turns before a turn begins: where their prompts are nearly full or, in a replay, as
 * it was done then. True when the session is to be loaded again.
 * Errors: those of compactWhereFull and of sessionOfRun, in a replay also passing ones of the model.
 */
export async function compactBefore(
  context: RunContext,
  request: RunRequest,
  before: Before,
  bounds: LoadBounds,
): Promise<boolean> {
  const { replay } = request;
  if (!replay?.shown) return compactWhereFull(context, request, before);
  for (const { up_to_turn, settings, fallback, ...shown } of replay.compactions) {
    const asked = { ...request, replay: { ...replay, shown, fallback } };
    const loaded = await sessionOfRun(context, asked, Infinity, bounds);
    const older = loaded.history.filter(({ turn }) => turn <= up_to_turn);
    if (older.length > 0) await compact(context, asked, { ...before, settings, loaded }, older);
  }
  return replay.compactions.length > 0;
}
