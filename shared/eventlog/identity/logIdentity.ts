/**
 * Identifies a log. Its id is the id of its first event until an operator restores the log and
 * declares so: from then on the id is the id of the declaration event, which names the logs that it
 * replaces.
 */
import { logChangedError, TurnlogError } from '../../lib/errors/turnlogError.ts';
import { MIB } from '../../lib/units.ts';
import {
  totalBytesOf,
  type Checkpoint,
  type EventLog,
  type Position,
  type StoredEvent,
} from '../../ports/eventStore.ts';
import { decodeEvent } from '../codec.ts';
import { toDomainEvent } from '../domainEvent.ts';
import { storeDamageError } from '../reading/streamDamage.ts';
import { logStream } from '../streams.ts';

/** The part of a log that identifies it. */
export type IdentifiableLog = Pick<EventLog, 'firstEvent' | 'readStream' | 'eventAt' | 'head'>;

const PAGE = { direction: 'forwards', limit: 1_000, maxBytes: 2 * MIB } as const;
/** More than a log's own stream ever has: it grows when an operator declares something. */
const MOST = { events: 10_000, bytes: 16 * MIB };

interface Declaration {
  id: string;
  position: Position;
  replaces: readonly string[];
}

export interface LogIdentity {
  /** The id of the first event. */
  root: string;
  /** Oldest first. */
  declarations: readonly Declaration[];
}

/** True for the type of events that change the id of the log. */
export const isRestoreDeclaration = ({ type }: Pick<StoredEvent, 'type'>): boolean =>
  type === 'log.restore_accepted.v1';

/** The declaration in an event of the log's own stream; undefined for any other event. */
function parseDeclaration(stored: StoredEvent, root: string): Declaration | undefined {
  if (stored.stream !== logStream(root) || !isRestoreDeclaration(stored)) return undefined;
  const event = toDomainEvent(decodeEvent(stored));
  if (event?.type !== 'log.restore_accepted.v1') return undefined;
  return { id: stored.id, position: stored.position, replaces: event.data.replaces };
}

/**
 * Reads the identity of a log and the events of its stream; undefined while it is empty. Throws
 * `store_unavailable`, `stream_damaged` for a stream of more than 10,000 events or 16 MiB.
 */
export async function readLogEvents(
  log: Pick<IdentifiableLog, 'firstEvent' | 'readStream'>,
): Promise<{ identity: LogIdentity; events: readonly StoredEvent[] } | undefined> {
  const first = await log.firstEvent();
  if (!first) return undefined;
  const stream = logStream(first.id);
  const events: StoredEvent[] = [];
  let bytes = 0;
  for (let isEnd = false; !isEnd;) {
    const from = (events.at(-1)?.revision ?? -1) + 1;
    const page = await log.readStream(stream, { ...PAGE, from });
    events.push(...page);
    const pageBytes = totalBytesOf(page);
    bytes += pageBytes;
    if (events.length > MOST.events || bytes > MOST.bytes)
      throw storeDamageError(
        stream,
        `it has more than ${MOST.events} events or ${MOST.bytes} bytes`,
      );
    isEnd = page.length < PAGE.limit && pageBytes < PAGE.maxBytes;
  }
  const declarations = events.flatMap((stored) => parseDeclaration(stored, first.id) ?? []);
  return { identity: { root: first.id, declarations }, events };
}

/** Reads the identity of a log; undefined while it is empty. Throws `store_unavailable`. */
export const readLogIdentity = async (
  log: Pick<IdentifiableLog, 'firstEvent' | 'readStream'>,
): Promise<LogIdentity | undefined> => (await readLogEvents(log))?.identity;

/** The log's id at a position, or its current id. */
export const logIdAt = ({ root, declarations }: LogIdentity, position?: Position): string =>
  declarations.findLast(
    (batchDeclarations) => position === undefined || batchDeclarations.position <= position,
  )?.id ?? root;

function hashOf({ metadata }: StoredEvent): string {
  try {
    const { hash } = JSON.parse(metadata) as { hash?: unknown };
    return typeof hash === 'string' ? hash : '';
  } catch {
    return '';
  }
}

/** The checkpoint of a follower that has processed the event. */
export const createCheckpoint = (identity: LogIdentity, event: StoredEvent): Checkpoint => ({
  log_id: logIdAt(identity, event.position),
  position: event.position,
  event_id: event.id,
  event_hash: hashOf(event),
});

/** True for the event of a checkpoint with another hash: it was changed in its place. */
export const isChangedEvent = (event: StoredEvent, { event_id, event_hash }: Checkpoint): boolean =>
  event.id === event_id && hashOf(event) !== event_hash;

const ADVICE =
  'Put the right log back. If this log was restored on purpose, declare it: npm run cli -- log accept-restored --reason <text>.';

async function describeActualLog(
  log: IdentifiableLog,
  event: StoredEvent | undefined,
  { position }: Checkpoint,
): Promise<string> {
  if (event) return `holds the event ${event.id} there`;
  const end = await log.head();
  if (end === undefined) return 'is empty';
  return end < position ? `ends at ${end}` : 'holds no event there';
}

const logChanged = (sentence: string): TurnlogError => logChangedError(`${sentence} ${ADVICE}`);

/**
 * Checks that the log holds the checkpoint's event, and resolves with the log's identity. An event
 * that was changed in its place damages its stream, and does not make the log another one. Throws
 * `log_changed` with the difference and advice, `log_restored` when the log was declared to replace
 * the checkpoint's log, or `store_unavailable`.
 */
export async function verifyCheckpoint(
  log: IdentifiableLog,
  checkpoint: Checkpoint,
): Promise<LogIdentity> {
  const { log_id, position, event_id } = checkpoint;
  const identity = await readLogIdentity(log);
  const event = await log.eventAt(position);
  const expected = `the event ${event_id} was followed up to, at ${position} of the log ${log_id}`;
  if (!identity || event?.id !== event_id) {
    if (identity?.declarations.some(({ replaces }) => replaces.includes(log_id)))
      throw new TurnlogError(
        'log_restored',
        `The log was restored: ${expected}, which the log ${logIdAt(identity)} was declared to stand for.`,
      );
    throw logChanged(
      `The log has changed: ${expected}, and this log ${await describeActualLog(log, event, checkpoint)}.`,
    );
  }
  const lineage = [identity.root, ...identity.declarations.map(({ id }) => id)];
  if (lineage.includes(log_id)) return identity;
  throw logChanged(`The log has changed: ${expected}, and this log is ${logIdAt(identity)}.`);
}

/** Tracks the checkpoint of a subscription. */
interface CheckpointTracker {
  /**
   * Verifies the latest checkpoint against the log. Call whenever the subscription begins or
   * resumes. Throws as verifyCheckpoint.
   */
  verify(): Promise<void>;
  /** The position after which the subscription begins or resumes. */
  resumesAfter(): Position | undefined;
  /** Advances over delivered events. Resolves with the checkpoint after them. */
  advance(events: readonly StoredEvent[]): Promise<Checkpoint | undefined>;
}

/**
 * Creates the tracker of a subscription that begins after a checkpoint or a position given by an
 * operator.
 */
export function createCheckpointTracker(
  log: IdentifiableLog,
  after: Checkpoint | Position | undefined,
): CheckpointTracker {
  let checkpoint = typeof after === 'object' ? after : undefined;
  let givenPosition = typeof after === 'string' ? after : undefined;
  let identity: LogIdentity | undefined;

  return {
    async verify() {
      identity = checkpoint ? await verifyCheckpoint(log, checkpoint) : undefined;
    },
    resumesAfter: () => checkpoint?.position ?? givenPosition,
    async advance(events) {
      const last = events.at(-1);
      if (!last) return checkpoint;
      identity ??= await readLogIdentity(log);
      if (!identity) return checkpoint;
      const { root, declarations } = identity;
      const batchDeclarations = events.flatMap((stored) => parseDeclaration(stored, root) ?? []);
      const declaredIds = new Set(declarations.map(({ id }) => id));
      const newDeclarations = batchDeclarations.filter(({ id }) => !declaredIds.has(id));
      if (newDeclarations.length > 0)
        identity = { root, declarations: [...declarations, ...newDeclarations] };
      checkpoint = createCheckpoint(identity, last);
      givenPosition = undefined;
      return checkpoint;
    },
  };
}
