import { hash } from 'node:crypto';
import { logChangedError, TurnlogError } from '../lib/errors/turnlogError.ts';
import {
  createCheckpoint,
  readLogIdentity,
  logIdAt,
  type IdentifiableLog,
  type LogIdentity,
} from '../eventlog/identity/logIdentity.ts';
import type { Checkpoint, Position } from '../ports/eventStore.ts';

/**
 * The start of a follower of a log: after an event, or at a position whose event is not from
 * Turnlog.
 */
export type LogStart = Checkpoint | Position;

/** A position, a digest of the log id (48 bits) and a digest of the event there (96 bits). */
export const CURSOR_PATTERN = '^([0-9]{16}|[0-9]{20}_[0-9]{20})\\.[A-Za-z0-9_-]{24}$';
const FORM = new RegExp(CURSOR_PATTERN);

const digest = (parts: readonly string[], chars: number): string =>
  hash('sha256', JSON.stringify(parts), 'base64url').slice(0, chars);

const logDigest = (logId: string): string => digest(['log', logId], 8);

const written = (position: Position, logId: string, event: readonly string[]): string =>
  `${position.replace('/', '_')}.${logDigest(logId)}${digest([logId, position, ...event], 16)}`;

const cursorAt = (position: Position, identity: LogIdentity): string =>
  written(position, logIdAt(identity, position), []);

/**
 * The public form of a checkpoint. The event it identifies may belong to another account, so the
 * cursor reveals nothing about that event.
 */
export const formatCursor = ({ position, log_id, event_id, event_hash }: Checkpoint): string =>
  written(position, log_id, [event_id, event_hash]);

/** True for a string in the format of a cursor. */
export const isCursor = (text: string): boolean => FORM.test(text);

/** The error for a cursor that the log has never contained. */
const positionUnknown = (): TurnlogError =>
  new TurnlogError(
    'position_unknown',
    'The log holds nothing at that position: it is of another log, or of what a restored log has lost. Begin anew, and know what you have by the ids of events.',
  );

/** Explains why a log does not contain the event of a cursor. */
function misfit(cursor: string, { root, declarations }: LogIdentity): TurnlogError {
  const digestOfLog = cursor.slice(-24, -16);
  const isNamed = (ids: readonly string[]): boolean =>
    ids.some((id) => logDigest(id) === digestOfLog);
  const lineage = [root, ...declarations.map(({ id }) => id)];
  if (declarations.some(({ replaces }) => isNamed(replaces)) || !isNamed(lineage))
    return positionUnknown();
  return logChangedError(
    'The log does not hold the event any more that the position names. An operator is to put the right log back, or to declare that it was restored.',
  );
}

/**
 * Resolves a cursor to its start position. Throws `position_unknown` if the log never contained its
 * event or was declared restored without it, and `log_changed` if the event is missing without such
 * a declaration.
 */
export async function openCursor(log: IdentifiableLog, cursor: string): Promise<LogStart> {
  const identity = await readLogIdentity(log);
  if (!identity || !isCursor(cursor)) throw positionUnknown();
  const position = cursor.slice(0, -25).replace('_', '/') as Position;
  const event = await log.eventAt(position);
  const checkpoint = event && createCheckpoint(identity, event);
  if (checkpoint && formatCursor(checkpoint) === cursor) return checkpoint;
  const isWithin = position <= ((await log.head()) ?? '');
  if (isWithin && cursorAt(position, identity) === cursor) return position;
  throw misfit(cursor, identity);
}

/** The end of the log and its cursor; both are undefined while the log is empty. */
export async function readEndOfFeed(
  log: IdentifiableLog,
): Promise<{ start: LogStart | undefined; cursor: string | undefined }> {
  const position = await log.head();
  const identity = await readLogIdentity(log);
  if (position === undefined || !identity) return { start: undefined, cursor: undefined };
  const event = await log.eventAt(position);
  if (!event) return { start: position, cursor: cursorAt(position, identity) };
  const checkpoint = createCheckpoint(identity, event);
  return { start: checkpoint, cursor: formatCursor(checkpoint) };
}
