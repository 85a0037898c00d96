import type { AgentEvent } from '../domain/agent/events.ts';
import type { SessionEvent } from '../domain/session/events.ts';
import { sessionErased } from '../erased.ts';
import { foundDamaged, type StreamSource } from '../eventlog/noteDamage.ts';
import { readPage } from '../eventlog/readWhole.ts';
import { agentStream, sessionStream } from '../eventlog/streams.ts';
import { untilWhole } from '../eventlog/untilWhole.ts';
import type { KnownEvent } from '../eventlog/wholeStream.ts';
import { recordCollector, type ExportedAgent, type ExportedRecord } from '../exports/record.ts';
import { LIMITS } from '../limits.ts';
import type { SessionRow } from '../readModels/tables.ts';

/** Events that are read at a time. */
const GROUP = 64;

/**
 * The turns of a session that have ended, and the summaries of older ones, with all that its events
 * say, as far as the row has seen them: a page of the log at a time.
 * Errors: `session_erased`, `stream_damaged` (noted), `release_too_old`, `key_missing`,
 * `store_unavailable`.
 */
export async function* readRecords(
  source: StreamSource,
  { session_id, revision: last }: Pick<SessionRow, 'session_id' | 'revision'>,
): AsyncGenerator<ExportedRecord[], void> {
  const stream = sessionStream(session_id);
  const collect = recordCollector();
  for (let from = 0; from <= last;) {
    const first = from;
    const page = await untilWhole<KnownEvent[]>(source, stream, {
      look: () =>
        readPage(source, stream, {
          direction: 'forwards',
          from: first,
          limit: Math.min(GROUP, last + 1 - first),
          maxBytes: LIMITS.store.pageBytes,
        }),
      missing: ({ length }) =>
        length > 0 ? undefined : { reason: `revision ${first} is missing`, revision: first },
    });
    if (page.some(({ recorded }) => recorded.erased)) throw sessionErased();
    from += page.length;
    source.damaged.forget(stream, { from: first, to: from - 1 });
    yield page.flatMap(
      ({ event, recorded }) => collect(event as SessionEvent, recorded.metadata.recorded_at) ?? [],
    );
  }
}

/** Finds what an agent was at a revision of its stream; undefined where it was erased. */
export type FindAgentAt = (agentId: string, revision: number) => Promise<ExportedAgent | undefined>;

/**
 * Reads agents as they were from the log, and remembers the last one, which is that of the next turn
 * as a rule. Errors: `stream_damaged` (noted), `release_too_old`, `key_missing`, `store_unavailable`.
 */
export function agentsAt(source: StreamSource): FindAgentAt {
  let known: { key: string; agent: ExportedAgent | undefined } | undefined;
  return async (agentId, revision) => {
    const key = `${agentId}@${revision}`;
    if (known?.key === key) return known.agent;
    const stream = agentStream(agentId);
    const asked = { direction: 'forwards', from: revision, limit: 1 } as const;
    const [found] = await readPage(source, stream, asked);
    if (!found) {
      const reason = `revision ${revision} is missing`;
      throw await foundDamaged(source, stream, { reason, revision });
    }
    known = { key, agent: found.recorded.erased ? undefined : agentOf(found.event as AgentEvent) };
    return known.agent;
  };
}

function agentOf({ type, data }: AgentEvent): ExportedAgent | undefined {
  if (type === 'agent.erased.v1') return undefined;
  return { name: data.name, instruction: data.instruction };
}
