/**
 * The trees that were signed over a log, as the log's own stream records them. Without this record, a
 * tree that was deleted could be made again from a forged log, and signed with the same key.
 */
import { decodeEvent } from '../eventlog/codec.ts';
import { toDomainEvent } from '../eventlog/domainEvent.ts';
import {
  readLogEvents,
  type IdentifiableLog,
  type LogIdentity,
} from '../eventlog/identity/logIdentity.ts';
import { logStream } from '../eventlog/streams.ts';
import type { Position, StoredEvent } from '../ports/eventStore.ts';

/** The newest declaration of a tree. */
interface TreeDeclaration {
  position: Position;
  /** The keys that sign its checkpoints. */
  vkeys: readonly string[];
}

export interface LogTrees {
  identity: LogIdentity;
  /** The last part of the origin of the current tree. */
  treeId: string;
  /** Those of earlier trees, which a declaration of an operator ended. */
  earlierIds: readonly string[];
  /** Those of them that had the same leaves: no restored log was declared since. */
  sameLeafIds: readonly string[];
  /** By origin. */
  declared: ReadonlyMap<string, TreeDeclaration>;
  /** Why a declaration can't be read, in a sentence: then no tree may be begun. */
  damage: string | undefined;
}

/** The declared tree in an event; undefined where the event can't be read. */
function parseTree(stored: StoredEvent): { origin: string; vkeys: readonly string[] } | undefined {
  try {
    const event = toDomainEvent(decodeEvent(stored));
    return event?.type === 'log.tree_declared.v1' ? event.data : undefined;
  } catch {
    // Whatever decoding reports, it is about the content.
    return undefined;
  }
}

const damageOf = ({ id, stream, revision }: StoredEvent): string =>
  `The event ${id} (${stream} revision ${revision}) declares a transparency log and is damaged: put the event log back from a backup.`;

/** True for an event after which another tree begins. */
export const isTreeReplacement = ({ type, stream }: StoredEvent, root: string): boolean =>
  type === 'log.tree_replaced.v1' && stream === logStream(root);

/** Reads which trees a log declares; undefined while it is empty. Throws `store_unavailable`. */
export async function readLogTrees(
  log: Pick<IdentifiableLog, 'firstEvent' | 'readStream'>,
): Promise<LogTrees | undefined> {
  const logEvents = await readLogEvents(log);
  if (!logEvents) return undefined;
  const ids = [logEvents.identity.root];
  let sameLeavesFrom = 0;
  const declared = new Map<string, TreeDeclaration>();
  let damage: string | undefined;
  for (const stored of logEvents.events) {
    if (stored.type === 'log.restore_accepted.v1' || stored.type === 'log.tree_replaced.v1') {
      // In a log that began with its declaration, that is the first event.
      if (stored.id !== logEvents.identity.root) ids.push(stored.id);
      if (stored.type === 'log.restore_accepted.v1') sameLeavesFrom = ids.length - 1;
    } else if (stored.type === 'log.tree_declared.v1') {
      const tree = parseTree(stored);
      if (tree) declared.set(tree.origin, { position: stored.position, vkeys: tree.vkeys });
      else damage ??= damageOf(stored);
    }
  }
  const treeId = ids.at(-1)!;
  const earlierIds = ids.slice(0, -1);
  const sameLeafIds = earlierIds.slice(sameLeavesFrom);
  return { identity: logEvents.identity, treeId, earlierIds, sameLeafIds, declared, damage };
}

/**
 * The origin of the current tree under a name, if the log declares it; otherwise that of its newest
 * declaration, because the name is that of another deployment; otherwise that under the name.
 */
export function ownOrigin({ declared, treeId }: LogTrees, name: string): string {
  const named = `${name}/${treeId}`;
  if (declared.has(named)) return named;
  const current = [...declared].filter(([origin]) => origin.endsWith(`/${treeId}`));
  const byPosition = current.toSorted(([, a], [, b]) => (a.position < b.position ? -1 : 1));
  return byPosition.at(-1)?.[0] ?? named;
}

/** Why a declared tree without a checkpoint is not begun again, and what to do. */
export const missingTreeSentence = (origin: string): string =>
  `The transparency log ${origin} is missing: the event log declares that it was signed, and there is no checkpoint of it. Start with the DATA_DIR, or the DATABASE_URL, that has it. If another server keeps using that one, give this one another LOG_ORIGIN. If it is gone, put its files back from a backup. If there is none, declare another tree: npm run cli -- audit declare-tree --reason <text>.`;
