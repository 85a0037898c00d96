import { LRUCache } from 'lru-cache';
import { readPage } from '../eventlog/reading/readWhole.ts';
import type { StreamSource } from '../eventlog/reading/reportDamage.ts';
import { isFull, type DecodedEvent } from '../eventlog/reading/wholeStream.ts';
import { agentStream } from '../eventlog/streams.ts';
import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { LIMITS } from '../limits.ts';
import type { Position } from '../ports/eventStore.ts';
import { differingColumn } from '../readModels/integrity/compareRows.ts';
import { LOOK_AGAIN_MS, type RowFindings } from '../readModels/integrity/rowFindings.ts';
import type { AgentRow } from '../readModels/tables.ts';
import type { AgentEvent } from './events.ts';
import { projectAgent } from './projection.ts';

/** The events after a row's own are the changes that the read models do not show yet. */
const PAGE_EVENTS = 16;

interface KnownAgent {
  /** As the log has it. */
  row: AgentRow;
  /** When this process read the row's last event, and when it looked for a later one. */
  learnedAt: number;
  lookedAt: number;
  looking: boolean;
}

/** The row after an event of the agent's stream. */
function rowAfter(row: AgentRow | undefined, { recorded, event }: DecodedEvent): AgentRow {
  const [change] = projectAgent(recorded, event as AgentEvent);
  const before = event.type === 'agent.created.v1' ? undefined : row;
  const apply = change!.change as (row: AgentRow | undefined) => AgentRow;
  return { ...apply(before), account_id: recorded.metadata.account_id };
}

const unlessDeleted = (row: AgentRow): AgentRow | undefined =>
  row.deleted && !row.erased ? undefined : row;

/**
 * Checks rows of agents against the last event of their stream. `check` resolves with the agent as
 * the log has it, which may be newer than the row, and undefined for a deleted one. It rejects with
 * `read_model_damaged` for a row that does not say what its event says; `stream_damaged`,
 * `release_too_old`, `key_missing`, `store_unavailable`. `readNew` reads an agent from the log
 * alone. It resolves with undefined for an unknown or deleted agent, and for one whose events may not fit
 * in one page. `forget` drops the texts of an agent in memory, or all of them. `now` returns milliseconds
 * of a monotonic clock.
 */
export function createAgentRowCheck(
  source: StreamSource,
  findings: RowFindings,
  now: () => number,
): {
  check: (row: AgentRow) => Promise<AgentRow | undefined>;
  readNew: (agentId: string) => Promise<AgentRow | undefined>;
  forget: (agentId?: string) => void;
} {
  const agents = new LRUCache<string, KnownAgent>({
    maxSize: LIMITS.cache.rowChars,
    sizeCalculation: ({ row }) =>
      JSON.stringify(row.parameters).length + row.instruction.length + 1,
  });

  const read = (agentId: string, from: number, limit: number): Promise<DecodedEvent[]> =>
    readPage(source, agentStream(agentId), {
      direction: 'forwards',
      from,
      limit,
      maxBytes: LIMITS.store.pageBytes,
    });

  /** The row's own event and those after it. Damage after the row's event does not concern it. */
  async function eventsFrom(agentId: string, revision: number): Promise<DecodedEvent[]> {
    try {
      return await read(agentId, revision, PAGE_EVENTS);
    } catch (error) {
      if (!isTurnlogError(error) || error.code === 'store_unavailable') throw error;
      return read(agentId, revision, 1);
    }
  }

  const know = (row: AgentRow): void =>
    void agents.set(row.agent_id, { row, learnedAt: now(), lookedAt: now(), looking: false });

  /** Looks for events after a known row, so that an earlier row which was put back is noticed. */
  async function lookAgain(agent: KnownAgent): Promise<void> {
    if (agent.looking || now() - agent.lookedAt < LOOK_AGAIN_MS) return;
    agent.looking = true;
    agent.lookedAt = now();
    try {
      const { row } = agent;
      const later = await read(row.agent_id, row.revision + 1, PAGE_EVENTS);
      if (later.length > 0 && agents.peek(row.agent_id) === agent)
        know(later.reduce(rowAfter, row));
    } catch {
      // The next check of a changed row reports it.
    } finally {
      agent.looking = false;
    }
  }

  async function newestRow(row: AgentRow): Promise<AgentRow> {
    const place = { table: 'agents', key: row.agent_id };
    const agent = agents.get(row.agent_id);
    if (agent && row.revision < agent.row.revision) {
      void findings.outdated(place, agent.row.position as Position, agent.learnedAt);
      return agent.row;
    }
    if (agent && row.revision === agent.row.revision) {
      const column = differingColumn(agent.row, row);
      if (column !== undefined) throw findings.differs(place, column);
      findings.matches(place);
      void lookAgain(agent);
      return agent.row;
    }
    let events: DecodedEvent[] = [];
    await findings.untilSeen(place, async () => {
      events = await eventsFrom(row.agent_id, row.revision);
      return events.length > 0;
    });
    const [own, ...later] = events as [DecodedEvent, ...DecodedEvent[]];
    const expected = rowAfter(row, own);
    const column = differingColumn(expected, row);
    if (column !== undefined) throw findings.differs(place, column);
    findings.matches(place);
    const newest = later.length === 0 ? row : later.reduce(rowAfter, row);
    know(newest);
    return newest;
  }

  return {
    check: async (row) => unlessDeleted(await newestRow(row)),
    async readNew(agentId) {
      const events = await read(agentId, 0, PAGE_EVENTS);
      const stored = events.map((event) => event.stored);
      if (isFull({ events: stored, limit: PAGE_EVENTS, maxBytes: LIMITS.store.pageBytes }))
        return undefined;
      const row = events.reduce<AgentRow | undefined>(rowAfter, undefined);
      return row && unlessDeleted(row);
    },
    forget: (agentId) => void (agentId === undefined ? agents.clear() : agents.delete(agentId)),
  };
}
