import { createBackoff } from '../lib/time/backoff.ts';
import { isRejection } from '../domain/rejection.ts';
import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { createConflictLimit } from '../eventlog/conflictLimit.ts';
import { sessionStream } from '../eventlog/streams.ts';
import { sleep } from '../lib/time/sleep.ts';
import { interruptIfOrphaned } from './recovery/interruptTurn.ts';
import type { Arrival } from './queueing/admission.ts';
import type { OpenRun, RunContext } from './context.ts';
import { compactBefore } from './model/compactBefore.ts';
import { promptBytes } from './model/contextWindow.ts';
import { createTurnSearch } from './findTurn.ts';
import type { RunRequest } from './runRequest.ts';
import { planPrompt } from './model/planPrompt.ts';
import { damagedForClient, sessionOfRun, type LoadBounds } from './queueing/acquireSession.ts';
import { sessionBusy } from './queueing/sessionQueue.ts';
import { startTurn } from './startTurn.ts';

const PAUSES = { firstMs: 5, longestMs: 250 };

/**
 * Begins a turn of the session. While another run holds it, waits and tries again until the wait
 * limit; a turn that nobody runs any more is closed first.
 * Errors: Rejection (no such session of the agent), `session_not_found`, `session_busy`,
 * TurnBegunBefore, `stream_damaged`, `invalid_request` (too long for the model), `payload_too_large`,
 * `overloaded`, `rate_limited`, `store_unavailable`, the signal's reason.
 */
export async function beginTurn(
  context: RunContext,
  request: RunRequest,
  { arrival, signal, drawOn }: { arrival: Arrival } & Pick<LoadBounds, 'signal' | 'drawOn'>,
): Promise<OpenRun> {
  const { session_id, claim } = request;
  const bounds = { until: performance.now() + context.limits.waitMs, signal, drawOn };
  const { settings, tokens } = await planPrompt(context, request);
  const conflicts = createConflictLimit(context, sessionStream(session_id), {
    ...bounds,
    tooMany: sessionBusy,
  });

  let compacted = false;
  const search = claim && createTurnSearch(context.store, session_id, claim);

  /** `held` while the session is another run's, `moved` when it has to be loaded again. */
  async function attempt(): Promise<OpenRun | 'held' | 'moved'> {
    const loaded = await sessionOfRun(context, request, tokens, bounds);
    if (search) await search.requireNone(loaded.head.revision, bounds);
    const bytes = promptBytes(request, loaded.history);
    if (!arrival.grow(bytes)) {
      // Without its place and what was loaded, it holds nothing that others wait for.
      await arrival.enter(bytes, Math.max(0, bounds.until - performance.now()), signal);
      return 'moved';
    }
    // A turn that is begun after one try has the summary, or does without.
    if (!compacted) {
      compacted = true;
      const before = { settings, loaded, tokens, signal };
      if (await compactBefore(context, request, before, bounds)) return 'moved';
    }
    try {
      const run = await startTurn(context, request, { settings, loaded });
      const { account_id } = request.actor;
      const subject = { account_id, session_id, turn: run.state.turn };
      const live = context.sessions.live.begin(subject, request.deltas === true, run.head.key);
      return { ...run, live, hold: (more) => arrival.grow(bytes + more) };
    } catch (error) {
      if (isRejection(error, 'turn_open')) {
        // This run holds the session's place in the queue, so nothing in this process runs that
        // turn.
        const known = { session_id, loaded };
        const { appended } = await interruptIfOrphaned(context, known, bounds);
        return appended ? 'moved' : 'held';
      }
      if (!isTurnlogError(error, 'stream_conflict')) throw error;
      await conflicts.lost(loaded.head.revision);
      if (search && request.new_session) await search.requireNone(0, bounds);
      return 'moved';
    }
  }

  const pauses = createBackoff(PAUSES);
  for (;;) {
    const pauseMs = pauses.next();
    const run = await attempt().catch(async (error: unknown) => {
      throw await damagedForClient(context, request, error);
    });
    if (run === 'moved') continue;
    if (run !== 'held') return run;
    if (performance.now() + pauseMs > bounds.until) throw sessionBusy();
    await sleep(pauseMs, signal);
  }
}
