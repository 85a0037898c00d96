import { streamId, streamKind } from '../../eventlog/streams.ts';
import { createPause } from '../../lib/concurrency/yieldToEventLoop.ts';
import { LIMITS } from '../../limits.ts';
import { isoTime } from '../../ports/clock.ts';
import type { Page, PageOf, ReadModels } from '../../ports/readModels.ts';
import type { SessionRow } from '../../readModels/tables.ts';
import { erasureRefusedError } from '../errors.ts';

const DAY_MS = 86_400_000;

/** Finds the sessions that need texts of a session or agent. */
export type DependentQueries = Pick<
  ReadModels,
  'listReplaysOf' | 'listForksOf' | 'findNewestSessionOf'
>;

export interface Minimum {
  /** Sessions are kept for so many days after their last event. */
  days: number;
  /** Milliseconds since the epoch. Called only when there is a session that needs the texts. */
  now: () => Promise<number>;
}

/** When the session's minimum ends; undefined when it is over. */
async function keptUntil(
  { updated_at }: SessionRow,
  { days, now }: Minimum,
): Promise<string | undefined> {
  const until = Date.parse(updated_at) + days * DAY_MS;
  if (until <= (await now())) return undefined;
  return Number.isNaN(until) ? 'a time that can not be told' : isoTime(until);
}

/** Throws for an agent with a session that is under its minimum: each one needs the instruction. */
async function requireAgentNotNeeded(
  { findNewestSessionOf }: DependentQueries,
  agentId: string,
  minimum: Minimum,
): Promise<void> {
  const newest = await findNewestSessionOf(agentId);
  const until = newest && (await keptUntil(newest, minimum));
  if (until !== undefined)
    throw erasureRefusedError(
      `Sessions of the account are kept for at least ${minimum.days} days after their last event, with the instruction of their agent: the session ${newest!.session_id} of this agent until ${until}.`,
    );
}

/**
 * Throws for a session with a fork or replay that is under its minimum, or with one of these in turn:
 * forks share its turns, and replays are erased with it.
 */
async function requireSessionNotNeeded(
  readModels: DependentQueries,
  sessionId: string,
  minimum: Minimum,
): Promise<void> {
  /** Grows while it is iterated over. */
  const ids = [sessionId];
  let accountId = '';
  // Queries of embedded read models don't wait.
  const pause = createPause(() => accountId);
  async function examine(
    list: (page: Page) => Promise<PageOf<SessionRow>>,
    relation: string,
  ): Promise<void> {
    let after: string | undefined;
    for (;;) {
      const pausing = pause();
      if (pausing) await pausing;
      const bounds = { limit: LIMITS.retention.pageEntries, bytes: LIMITS.http.pageBytes };
      const { rows, more } = await list({ ...bounds, ...(after !== undefined && { after }) });
      for (const row of rows) {
        const until = await keptUntil(row, minimum);
        if (until !== undefined)
          throw erasureRefusedError(
            `Sessions of the account are kept for at least ${minimum.days} days after their last event, with what they need: the session ${row.session_id} ${relation} until ${until}.`,
          );
        if (ids.length > LIMITS.retention.dependents)
          throw erasureRefusedError(
            `More than ${LIMITS.retention.dependents} sessions were made from this one, and whether one of them still needs it is not looked up. Erase them first.`,
          );
        ids.push(row.session_id);
        accountId = row.account_id;
      }
      after = rows.at(-1)?.session_id;
      if (!more || after === undefined) return;
    }
  }
  for (const id of ids) {
    await examine((page) => readModels.listForksOf(id, page), `that was forked from ${id}`);
    await examine((page) => readModels.listReplaysOf(id, page), `that a replay made of ${id}`);
  }
}

/**
 * Checks that no session under its minimum retention needs the texts of this stream: those of its
 * agent, or those of the session that it was forked from or that it replays. Throws
 * `erasure_refused`, which names the session and when its minimum ends.
 */
export async function requireNotNeeded(
  readModels: DependentQueries,
  stream: string,
  minimum: Minimum,
): Promise<void> {
  const id = streamId(stream);
  if (streamKind(stream) === 'agent') await requireAgentNotNeeded(readModels, id, minimum);
  if (streamKind(stream) === 'session') await requireSessionNotNeeded(readModels, id, minimum);
}
