import { readOrigins, requireMatchingForkPoint } from '../sessions/history/origins.ts';
import type { AgentEvent } from '../agents/events.ts';
import type { ForkPoint, SessionEvent } from '../sessions/events.ts';
import { originErasedError, sessionErasedError } from '../erasure/errors.ts';
import { reportDamage, type StreamSource } from '../eventlog/reading/reportDamage.ts';
import { readFirstEvent, readPage } from '../eventlog/reading/readWhole.ts';
import { endsWithErasure } from '../eventlog/reading/erasureLookup.ts';
import { agentStream, sessionStream } from '../eventlog/streams.ts';
import { readUntilComplete } from '../eventlog/reading/untilWhole.ts';
import type { DecodedEvent } from '../eventlog/reading/wholeStream.ts';
import { recordCollector, type ExportedAgent, type ExportedRecord } from './record.ts';
import { LIMITS } from '../limits.ts';
import type { SessionRow } from '../readModels/tables.ts';

/** Events that are read at a time. */
const GROUP = 64;

/** Events of one session, up to a revision. */
interface Stretch {
  session_id: string;
  last: number;
  /** Of what a fork shares. */
  fork?: { stream: string; point: ForkPoint };
}

/** Where the turns of a session are, the oldest first: nothing of an erased one, nor of those before it. */
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

/** The events of a stretch, a page at a time. */
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
 * The turns of a session that have ended, and the summaries of older ones, with all that its events
 * say, as far as the row has seen them: a page of the log at a time. Of a fork those come first
 * that it shares, as far as they are not erased.
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

/** Finds what a record's agent was then; undefined where it was erased. */
export type FindAgentAt = (record: ExportedRecord) => Promise<ExportedAgent | undefined>;

/**
 * Reads agents as they were from the log, and remembers the last one, which is that of the next
 * turn as a rule.
 */
export function createAgentReader(source: StreamSource): FindAgentAt {
  let known: { key: string; agent: ExportedAgent | undefined } | undefined;
  const found = async (agentId: string, revision: number): Promise<ExportedAgent | undefined> => {
    const key = `${agentId}@${revision}`;
    if (known?.key === key) return known.agent;
    const stream = agentStream(agentId);
    const asked = { direction: 'forwards', from: revision, limit: 1 } as const;
    const [event] = await readPage(source, stream, asked);
    if (!event) {
      const reason = `revision ${revision} is missing`;
      throw await reportDamage(source, stream, { reason, revision });
    }
    known = { key, agent: event.recorded.erased ? undefined : agentOf(event.event as AgentEvent) };
    return known.agent;
  };
  return async (record) => {
    const { agent_id, instruction } = record.ran;
    const { data } = record.kind === 'turn' ? record.started : record;
    const agent = await found(agent_id, data.agent_revision);
    return agent && instruction !== undefined ? { ...agent, instruction } : agent;
  };
}

function agentOf({ type, data }: AgentEvent): ExportedAgent | undefined {
  if (type === 'agent.erased.v1') return undefined;
  return { name: data.name, instruction: data.instruction };
}
