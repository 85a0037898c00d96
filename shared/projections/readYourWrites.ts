import { storeUnavailableError } from '../lib/errors/turnlogError.ts';
import type { Position } from '../ports/eventStore.ts';
import type { ReadModels } from '../ports/readModels.ts';

interface Options {
  /** How long a query waits for a write that is late, in milliseconds. */
  waitMs: number;
  /** One sentence on why the read models don't follow the log; undefined while they do. */
  late: () => string | undefined;
}

/** What clients ask for. */
type SessionQuery =
  'findSession' | 'listSessions' | 'findTranscript' | 'indexProgress' | 'sumUsage';
type Query = SessionQuery | 'findAgent' | 'listAgents' | 'agentListVersion';

const later = (one: Position | undefined, other: Position): Position =>
  one === undefined || other > one ? other : one;

/**
 * Read models of the one process that writes: where a write was answered before they showed it, as
 * the end of a turn always is, queries wait for it, or are refused with the reason. They never answer
 * with less than what was acknowledged, and don't wait for what is known not to come.
 */
export function neverStale(readModels: ReadModels, { waitMs, late }: Options): ReadModels {
  /** Of the last write that was answered before it was shown. */
  let owed: Position | undefined;
  /** The same of what only queries of sessions show. */
  let owedToSessions: Position | undefined;

  const patience = (timeoutMs: number): number => (late() === undefined ? timeoutMs : 0);

  async function untilShown(position: Position, timeoutMs: number): Promise<boolean> {
    const shown = await readModels.untilShown(position, patience(timeoutMs));
    if (!shown) owed = later(owed, position);
    return shown;
  }

  async function untilPaid(position: Position): Promise<void> {
    if (!(await readModels.untilShown(position, patience(waitMs))))
      throw storeUnavailableError(
        `What was written last can't be shown yet. ${late() ?? ''}`.trimEnd(),
      );
    if (owed === position) owed = undefined;
    if (owedToSessions === position) owedToSessions = undefined;
  }

  function guarded<Name extends Query>(name: Name): ReadModels[Name] {
    const query = readModels[name] as (...given: unknown[]) => Promise<unknown>;
    const ask = async (...given: unknown[]): Promise<unknown> => {
      if (owed !== undefined) await untilPaid(owed);
      return query(...given);
    };
    return ask as ReadModels[Name];
  }

  function ofSessions<Name extends SessionQuery>(name: Name): ReadModels[Name] {
    const query = guarded(name) as (...given: unknown[]) => Promise<unknown>;
    const ask = async (...given: unknown[]): Promise<unknown> => {
      if (owedToSessions !== undefined) await untilPaid(owedToSessions);
      return query(...given);
    };
    return ask as ReadModels[Name];
  }

  return {
    ...readModels,
    untilShown,
    showLater(position) {
      if (late() !== undefined) return false;
      owedToSessions = later(owedToSessions, position);
      return true;
    },
    findAgent: guarded('findAgent'),
    listAgents: guarded('listAgents'),
    agentListVersion: guarded('agentListVersion'),
    findSession: ofSessions('findSession'),
    listSessions: ofSessions('listSessions'),
    findTranscript: ofSessions('findTranscript'),
    sumUsage: ofSessions('sumUsage'),
    indexProgress: ofSessions('indexProgress'),
  };
}
