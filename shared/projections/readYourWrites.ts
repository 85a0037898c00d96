import { storeUnavailableError } from '../lib/errors/turnlogError.ts';
import type { Position } from '../ports/eventStore.ts';
import type { ReadModels } from '../ports/readModels.ts';

interface Options {
  /** How long a query waits for a write that is not shown yet, in milliseconds. */
  waitMs: number;
  /** A sentence that says why the read models do not follow the log; undefined while they do. */
  late: () => string | undefined;
}

/** The queries of clients. */
type SessionQuery =
  | 'findSession'
  | 'listSessions'
  | 'listSessionRevisions'
  | 'findTranscript'
  | 'indexProgress'
  | 'sumUsage';
type AgentListQuery = 'listAgents' | 'agentListVersion';
type Query = SessionQuery | AgentListQuery | 'findAgent';

const later = (left: Position | undefined, right: Position): Position =>
  left === undefined || right > left ? right : left;

/**
 * Wraps the read models of the only writing process, so that queries never miss an acknowledged
 * write. A write can be acknowledged before the read models show it, as the end of a turn always
 * is. Queries then wait for it, or reject with the reason. They do not wait while the read models
 * do not follow the log.
 */
export function readYourWrites(readModels: ReadModels, { waitMs, late }: Options): ReadModels {
  /** The position of the last write that was acknowledged before it was shown. */
  let pending: Position | undefined;
  /** The same for writes that only affect queries of sessions. */
  let pendingForSessions: Position | undefined;
  /** The same for new agents. */
  let pendingAgent: Position | undefined;

  const waitLimit = (timeoutMs: number): number => (late() === undefined ? timeoutMs : 0);

  async function untilShown(position: Position, timeoutMs: number): Promise<boolean> {
    const isShown = await readModels.untilShown(position, waitLimit(timeoutMs));
    if (!isShown) pending = later(pending, position);
    return isShown;
  }

  async function requireShown(position: Position): Promise<void> {
    if (!(await readModels.untilShown(position, waitLimit(waitMs))))
      throw storeUnavailableError(
        `What was written last can't be shown yet. ${late() ?? ''}`.trimEnd(),
      );
    if (pending === position) pending = undefined;
    if (pendingForSessions === position) pendingForSessions = undefined;
    if (pendingAgent === position) pendingAgent = undefined;
  }

  function guarded<Name extends Query>(
    name: Name,
    pendingFor: () => Position | undefined = () => undefined,
  ): ReadModels[Name] {
    const query = readModels[name] as (...args: unknown[]) => Promise<unknown>;
    const ask = async (...args: unknown[]): Promise<unknown> => {
      if (pending !== undefined) await requireShown(pending);
      const position = pendingFor();
      if (position !== undefined) await requireShown(position);
      return query(...args);
    };
    return ask as ReadModels[Name];
  }

  const ofSessions = <Name extends SessionQuery>(name: Name): ReadModels[Name] =>
    guarded(name, () => pendingForSessions);
  const ofAgents = <Name extends AgentListQuery>(name: Name): ReadModels[Name] =>
    guarded(name, () => pendingAgent);
  const findShownAgent = guarded('findAgent');

  return {
    ...readModels,
    untilShown,
    showLater(position, what = 'session') {
      if (late() !== undefined) return false;
      if (what === 'session') pendingForSessions = later(pendingForSessions, position);
      else pendingAgent = later(pendingAgent, position);
      return true;
    },
    /** Only an agent that is not shown yet may be new: runs of others do not wait. */
    async findAgent(id) {
      const agent = await findShownAgent(id);
      if (agent || pendingAgent === undefined) return agent;
      await requireShown(pendingAgent);
      return findShownAgent(id);
    },
    listAgents: ofAgents('listAgents'),
    agentListVersion: ofAgents('agentListVersion'),
    findSession: ofSessions('findSession'),
    listSessions: ofSessions('listSessions'),
    listSessionRevisions: ofSessions('listSessionRevisions'),
    findTranscript: ofSessions('findTranscript'),
    sumUsage: ofSessions('sumUsage'),
    indexProgress: ofSessions('indexProgress'),
  };
}
