/**
 * Which log it is. A log is known by its first event, until somebody restores it and declares so:
 * the event of that declaration is its id from there on, and names the logs that it stands for.
 */
import { logChangedError, TurnlogError } from '../../lib/errors/turnlogError.ts';
import type { Checkpoint, EventLog, Position, StoredEvent } from '../../ports/eventStore.ts';
import { decodeEvent } from '../codec.ts';
import { toDomainEvent } from '../domainEvent.ts';
import { logStream } from '../streams.ts';

/** What is needed of a log to tell which one it is. */
export type IdentifiableLog = Pick<EventLog, 'firstEvent' | 'readStream' | 'eventAt' | 'head'>;

/** More declarations than a log can sensibly have. */
const MAX_DECLARATIONS = 1_000;

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

/** What an event of the log's own stream declares; undefined for any other event. */
function declarationOf(stored: StoredEvent, root: string): Declaration | undefined {
  if (stored.stream !== logStream(root)) return undefined;
  const event = toDomainEvent(decodeEvent(stored));
  if (event?.type !== 'log.restore_accepted.v1') return undefined;
  return { id: stored.id, position: stored.position, replaces: event.data.replaces };
}

/** Which log it is; undefined while it is empty. Errors: `store_unavailable`. */
export async function readLogIdentity(
  log: Pick<IdentifiableLog, 'firstEvent' | 'readStream'>,
): Promise<LogIdentity | undefined> {
  const first = await log.firstEvent();
  if (!first) return undefined;
  const own = await log.readStream(logStream(first.id), {
    direction: 'forwards',
    limit: MAX_DECLARATIONS,
  });
  const declarations = own.flatMap((stored) => declarationOf(stored, first.id) ?? []);
  return { root: first.id, declarations };
}

/** The id of the log at a position; of the log as it is now without one. */
export const logIdAt = ({ root, declarations }: LogIdentity, position?: Position): string =>
  declarations.findLast((made) => position === undefined || made.position <= position)?.id ?? root;

function hashOf({ metadata }: StoredEvent): string {
  try {
    const { hash } = JSON.parse(metadata) as { hash?: unknown };
    return typeof hash === 'string' ? hash : '';
  } catch {
    return '';
  }
}

/** The checkpoint of whoever has dealt with the event. */
export const createCheckpoint = (identity: LogIdentity, event: StoredEvent): Checkpoint => ({
  log_id: logIdAt(identity, event.position),
  position: event.position,
  event_id: event.id,
  event_hash: hashOf(event),
});

const matchesCheckpoint = (event: StoredEvent, { event_id, event_hash }: Checkpoint): boolean =>
  event.id === event_id && hashOf(event) === event_hash;

const ADVICE =
  'Put the right log back; or, if this log was restored on purpose, declare so: npm run cli -- log accept-restored --reason <text>.';

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
 * Resolves with the log's identity when it holds the event of the checkpoint.
 * Errors: `log_changed`, with what was found and what to do; `log_restored` when somebody has
 * declared this log to stand for the one of the checkpoint; `store_unavailable`.
 */
export async function verifyCheckpoint(
  log: IdentifiableLog,
  checkpoint: Checkpoint,
): Promise<LogIdentity> {
  const { log_id, position, event_id } = checkpoint;
  const identity = await readLogIdentity(log);
  const event = await log.eventAt(position);
  const expected = `the event ${event_id} was followed up to, at ${position} of the log ${log_id}`;
  if (!identity || !event || !matchesCheckpoint(event, checkpoint)) {
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

/** Keeps the checkpoint of a subscription. */
export interface CheckpointTracker {
  /**
   * Compares the latest checkpoint with the log. To be called whenever the subscription begins or
   * resumes. Errors: those of requireFit.
   */
  verify(): Promise<void>;
  /** Where the subscription begins or resumes. */
  resumesAfter(): Position | undefined;
  /** Notes events that are handed out. Resolves with the checkpoint behind them. */
  advance(events: readonly StoredEvent[]): Promise<Checkpoint | undefined>;
}

/** The trail of a subscription that begins after a checkpoint, or a position that somebody named. */
export function createCheckpointTracker(
  log: IdentifiableLog,
  after: Checkpoint | Position | undefined,
): CheckpointTracker {
  let checkpoint = typeof after === 'object' ? after : undefined;
  let named = typeof after === 'string' ? after : undefined;
  let identity: LogIdentity | undefined;

  return {
    async verify() {
      identity = checkpoint ? await verifyCheckpoint(log, checkpoint) : undefined;
    },
    resumesAfter: () => checkpoint?.position ?? named,
    async advance(events) {
      const last = events.at(-1);
      if (!last) return checkpoint;
      identity ??= await readLogIdentity(log);
      if (!identity) return checkpoint;
      const { root, declarations } = identity;
      const made = events.flatMap((stored) => declarationOf(stored, root) ?? []);
      const known = new Set(declarations.map(({ id }) => id));
      const news = made.filter(({ id }) => !known.has(id));
      if (news.length > 0) identity = { root, declarations: [...declarations, ...news] };
      checkpoint = createCheckpoint(identity, last);
      named = undefined;
      return checkpoint;
    },
  };
}
