import { isOwnStream } from '../eventlog/reading/streamOwner.ts';
import type { AgentConfiguration, AgentEvent } from './events.ts';
import { agentErasedError } from '../erasure/errors.ts';
import type { StreamSource } from '../eventlog/reading/reportDamage.ts';
import { readPage } from '../eventlog/reading/readWhole.ts';
import { agentStream, isIdOf } from '../eventlog/streams.ts';
import { readUntilComplete } from '../eventlog/reading/readUntilComplete.ts';
import type { DecodedEvent } from '../eventlog/reading/wholeStream.ts';
import { LIMITS } from '../limits.ts';
import type { Bounds, PageOf, ReadModels } from '../ports/readModels.ts';
import { agentNotFoundError } from './queries.ts';

/** An agent as it was recorded at one revision of its stream. */
export interface RecordedRevision {
  agent_id: string;
  revision: number;
  change: 'created' | 'updated' | 'deleted';
  configuration: AgentConfiguration;
  recorded_at: string;
}

type RevisionsPage = Bounds & { order: 'newest' | 'oldest'; after?: number };

/** Events read at a time: an instruction may have a quarter of a megabyte. */
const GROUP = 8;

function revisionOf(agent_id: string, { recorded, event }: DecodedEvent): RecordedRevision {
  const { type, data } = event as AgentEvent;
  // Callers reject an erased agent before they read a page.
  if (type === 'agent.erased.v1') throw agentErasedError();
  const change = type.split('.')[1] as RecordedRevision['change'];
  const { recorded_at } = recorded.metadata;
  return { agent_id, revision: recorded.revision, change, configuration: data, recorded_at };
}

/** The events of the stream from a page's cursor on, in its order. */
async function* eventsOf(
  source: StreamSource,
  stream: string,
  last: number,
  { order, after }: RevisionsPage,
): AsyncGenerator<DecodedEvent> {
  const [direction, step] =
    order === 'oldest' ? (['forwards', 1] as const) : (['backwards', -1] as const);
  let from =
    order === 'oldest'
      ? after === undefined
        ? 0
        : after + 1
      : Math.min(last, (after ?? Infinity) - 1);
  while (from >= 0 && from <= last) {
    const group = await readPage(source, stream, {
      direction,
      from,
      limit: GROUP,
      maxBytes: LIMITS.store.pageBytes,
    });
    if (group.length === 0) return;
    yield* order === 'oldest' ? group : group.toReversed();
    from += step * group.length;
  }
}

/**
 * A page of an agent's revisions from its stream, with their texts, after a revision in the given
 * order; of a deleted agent, too. Errors: `agent_not_found` (the same for an unknown id and for
 * another account's agent), `agent_erased`, `stream_damaged`, `release_too_old`, `key_missing`,
 * `store_unavailable`.
 */
export async function readAgentRevisions(
  source: StreamSource & {
    readModels: Pick<ReadModels, 'findAgent'>;
  },
  accountId: string,
  agentId: string,
  page: RevisionsPage,
): Promise<PageOf<RecordedRevision>> {
  const stream = agentStream(agentId);
  const findRow = () => source.readModels.findAgent(agentId);
  const own = isIdOf('agent', agentId) && (await isOwnStream(source, accountId, stream, findRow));
  if (!own) throw agentNotFoundError();
  const [last] = await readPage(source, stream, { direction: 'backwards', limit: 1 });
  if (!last) throw agentNotFoundError();
  if (last.event.type === 'agent.erased.v1') throw agentErasedError();
  const rows: RecordedRevision[] = [];
  let bytes = 0;
  for await (const event of eventsOf(source, stream, last.recorded.revision, page)) {
    bytes += event.stored.data.length;
    if (rows.length === page.limit || (rows.length > 0 && bytes > page.bytes))
      return { rows, more: true };
    rows.push(revisionOf(agentId, event));
  }
  return { rows, more: false };
}

/** The configuration of an agent at a revision, with its texts. */
export async function readConfigurationAt(
  source: StreamSource,
  agentId: string,
  revision: number,
): Promise<AgentConfiguration> {
  const stream = agentStream(agentId);
  const [last] = await readUntilComplete(source, stream, {
    read: () => readPage(source, stream, { direction: 'backwards', limit: 1 }),
    findFlaw: ([newest]) =>
      newest && newest.recorded.revision >= revision
        ? undefined
        : { reason: `revision ${revision} is missing`, revision },
  });
  if (last?.event.type === 'agent.erased.v1') throw agentErasedError();
  const [event] = await readPage(source, stream, {
    direction: 'forwards',
    from: revision,
    limit: 1,
  });
  return revisionOf(agentId, event!).configuration;
}
