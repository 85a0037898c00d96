import { readOrigins, requireMatchingForkPoint } from '../sessions/history/origins.ts';
import type { AgentEvent } from '../agents/events.ts';
import type { ForkPoint, SessionEvent } from '../sessions/events.ts';
import { originErasedError, sessionErasedError } from '../erasure/errors.ts';
import { reportDamage, type StreamSource } from '../eventlog/reading/reportDamage.ts';
import { readFirstEvent, readPage } from '../eventlog/reading/readWhole.ts';
import { endsWithErasure } from '../eventlog/reading/erasureLookup.ts';
import { agentStream, sessionStream } from '../eventlog/streams.ts';
import { readUntilComplete } from '../eventlog/reading/readUntilComplete.ts';
import type { DecodedEvent } from '../eventlog/reading/wholeStream.ts';
import {
  recordCollector,
  type ExportedAgent,
  type ExportedRecord,
  type ExportedTurn,
} from './record.ts';
import { LIMITS } from '../limits.ts';
import type { SessionRow } from '../readModels/tables.ts';

/** Number of events per read. */
const GROUP = 64;

/** The events of one session up to a revision. */
interface Stretch {
  session_id: string;
  last: number;
  /** Set for the shared turns of a fork. */
  fork?: { stream: string; point: ForkPoint };
}

/**
 * Locates the turns of a session, oldest first. Stops at an erased origin and omits earlier ones.
 */
async function stretchesOf(
  source: StreamSource,
  { session_id, revision, forked_from }: ExportedRow,
): Promise<Stretch[]> {
  const stretches: Stretch[] = [{ session_id, last: revision }];
  if (!forked_from) return stretches;
  let stream = sessionStream(session_id);
  for (const point of await readOrigins(source, await readFirstEvent(source, stream))) {
    const origin = sessionStream(point.session_id);
    if (await endsWithErasure(source.store, origin)) break;
    const { session_id: shared, revision: last } = point;
    stretches.unshift({ session_id: shared, last, fork: { stream, point } });
    stream = origin;
  }
  return stretches;
}

/** Reads the events of a stretch, one page at a time. */
async function* eventsOf(
  source: StreamSource,
  { session_id, last, fork }: Stretch,
): AsyncGenerator<DecodedEvent[], void> {
  const stream = sessionStream(session_id);
  for (let from = 0; from <= last;) {
    const first = from;
    const page = await readUntilComplete<DecodedEvent[]>(source, stream, {
      read: () =>
        readPage(source, stream, {
          direction: 'forwards',
          from: first,
          limit: Math.min(GROUP, last + 1 - first),
          maxBytes: LIMITS.store.pageBytes,
        }),
      findFlaw: ({ length }) =>
        length > 0 ? undefined : { reason: `revision ${first} is missing`, revision: first },
    });
    if (page.some(({ recorded }) => recorded.erased))
      throw fork ? originErasedError() : sessionErasedError();
    from += page.length;
    if (fork && from > last)
      await requireMatchingForkPoint(source, fork.stream, fork.point, page.at(-1));
    source.damaged.clear(stream, { from: first, to: from - 1 });
    yield page;
  }
}

type ExportedRow = Pick<SessionRow, 'session_id' | 'revision' | 'forked_from'>;

/**
 * Reads the ended turns and the summaries of a session, up to the revision of the row, one page of
 * the log at a time. For a fork, the shared turns that are not erased come first.
 */
export async function* readRecords(
  source: StreamSource,
  row: ExportedRow,
): AsyncGenerator<ExportedRecord[], void> {
  const collect = recordCollector();
  for (const stretch of await stretchesOf(source, row))
    for await (const page of eventsOf(source, stretch))
      yield page.flatMap(
        ({ event, recorded }) =>
          collect(event as SessionEvent, recorded.metadata.recorded_at) ?? [],
      );
}

/** Finds the agent of a turn at the recorded revision; undefined when it was erased. */
export type FindAgentAt = (turn: ExportedTurn) => Promise<ExportedAgent | undefined>;

/**
 * Reads agent revisions from the log. Caches the last one, which the next turn usually needs.
 */
export function createAgentReader(source: StreamSource): FindAgentAt {
  let last: { key: string; agent: ExportedAgent | undefined } | undefined;
  const findAgent = async (
    agentId: string,
    revision: number,
  ): Promise<ExportedAgent | undefined> => {
    const key = `${agentId}@${revision}`;
    if (last?.key === key) return last.agent;
    const stream = agentStream(agentId);
    const query = { direction: 'forwards', from: revision, limit: 1 } as const;
    const [event] = await readPage(source, stream, query);
    if (!event) {
      const reason = `revision ${revision} is missing`;
      throw await reportDamage(source, stream, { reason, revision });
    }
    last = { key, agent: event.recorded.erased ? undefined : agentOf(event.event as AgentEvent) };
    return last.agent;
  };
  return async ({ ran: { agent_id, instruction }, started }) => {
    const agent = await findAgent(agent_id, started.data.agent_revision);
    return agent && instruction !== undefined ? { ...agent, instruction } : agent;
  };
}

function agentOf({ type, data }: AgentEvent): ExportedAgent | undefined {
  if (type === 'agent.erased.v1') return undefined;
  return { name: data.name, instruction: data.instruction };
}
