import { storeUnavailableError } from '../lib/errors/turnlogError.ts';
import type { Position } from '../ports/eventStore.ts';
import type { ReadModels } from '../ports/readModels.ts';
import type { AgentRow } from '../readModels/tables.ts';
import type { ProgressSource } from './progress.ts';
import { createPendingWrites } from './pendingWrites.ts';

interface Options {
  /** How long a query waits for a write that is not shown yet, in milliseconds. */
  waitMs: number;
  /** A sentence that says why the read models do not follow the log; undefined while they do. */
  late: () => string | undefined;
  /** The position up to which queries see everything. */
  shown: () => Position | undefined;
  /** Publishes after `shown` has changed. */
  progress: ProgressSource;
  /** Reads an agent from the log; resolves with undefined where that is not possible. */
  readNewAgent: (agentId: string) => Promise<AgentRow | undefined>;
}

/** The queries of clients. */
type Query =
  | 'findSession'
  | 'listSessions'
  | 'listSessionRevisions'
  | 'findTranscript'
  | 'indexProgress'
  | 'sumUsage'
  | 'listAgents'
  | 'agentListVersion'
  | 'findAgent';

const later = (left: Position | undefined, right: Position): Position =>
  left === undefined || right > left ? right : left;

/**
 * Wraps the read models of the only writing process, so that queries never miss an acknowledged
 * write. A write can be acknowledged before the read models show it, as the end of a turn always
 * is. The queries of its account and of its session then wait for it, or reject with the reason. After
 * a write that waited in vain, all queries do. While the read models do not follow the log, such queries
 * reject at once.
 */
export function readYourWrites(
  readModels: ReadModels,
  { waitMs, late, shown, progress, readNewAgent }: Options,
): ReadModels {
  /** The position of the last write that was acknowledged though it was not shown in time. */
  let overdue: Position | undefined;
  const turns = createPendingWrites();
  const newAgents = createPendingWrites();
  progress.subscribe(() => {
    const position = shown();
    if (position === undefined) return;
    turns.forgetUpTo(position);
    newAgents.forgetUpTo(position);
  });

  const waitLimit = (timeoutMs: number): number => (late() === undefined ? timeoutMs : 0);

  async function untilShown(position: Position, timeoutMs: number): Promise<boolean> {
    const isShown = await readModels.untilShown(position, waitLimit(timeoutMs));
    if (!isShown) overdue = later(overdue, position);
    return isShown;
  }

  async function requireShown(position: Position | undefined): Promise<void> {
    if (position === undefined) return;
    if (!(await readModels.untilShown(position, waitLimit(waitMs))))
      throw storeUnavailableError(
        `What was written last can't be shown yet. ${late() ?? ''}`.trimEnd(),
      );
    if (overdue === position) overdue = undefined;
  }

  function guarded<Name extends Query>(
    name: Name,
    pendingFor: (...args: Parameters<ReadModels[Name]>) => Position | undefined = () => undefined,
  ): ReadModels[Name] {
    const query = readModels[name] as (...args: unknown[]) => Promise<unknown>;
    const ask = async (...args: Parameters<ReadModels[Name]>): Promise<unknown> => {
      await requireShown(overdue);
      await requireShown(pendingFor(...args));
      return query(...args);
    };
    return ask as ReadModels[Name];
  }
  const findShownAgent = guarded('findAgent');

  return {
    ...readModels,
    untilShown,
    showLater(write) {
      if (late() !== undefined) return false;
      const { position, account_id } = write;
      const [pending, id] =
        'agent_id' in write ? [newAgents, write.agent_id] : [turns, write.session_id];
      pending.add(account_id, position);
      pending.add(id, position);
      return true;
    },
    /** A new agent is read from the log, so that its first run does not wait for the projection. */
    async findAgent(id) {
      const position = newAgents.find(id);
      const agent = await findShownAgent(id);
      if (agent || position === undefined) return agent;
      const newAgent = await readNewAgent(id);
      if (newAgent) return newAgent;
      await requireShown(position);
      return findShownAgent(id);
    },
    listAgents: guarded('listAgents', newAgents.find),
    agentListVersion: guarded('agentListVersion', newAgents.find),
    findSession: guarded('findSession', turns.find),
    findTranscript: guarded('findTranscript', (_account, session) => turns.find(session)),
    listSessions: guarded('listSessions', turns.find),
    listSessionRevisions: guarded('listSessionRevisions', turns.find),
    sumUsage: guarded('sumUsage', turns.find),
    indexProgress: guarded('indexProgress', (account) =>
      account === undefined ? undefined : turns.find(account),
    ),
  };
}
