import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import {
  SESSION_WRITERS,
  type ExportFormat,
  type MakeWriter,
} from '../../../shared/exports/formats.ts';
import { yieldToEventLoop, SLICE_BYTES } from '../../../shared/lib/concurrency/yieldToEventLoop.ts';
import { jsonSlices } from '../../../shared/lib/slices.ts';
import { LIMITS } from '../../../shared/limits.ts';
import {
  createAgentReader,
  readRecords,
  type FindAgentAt,
} from '../../../shared/exports/sessionRecords.ts';
import { findOwnSession, readSessionEvents } from '../../../shared/sessions/queries.ts';
import { sessionErasedError } from '../../../shared/erasure/errors.ts';
import type { RouteContext } from '../context.ts';
import { encodeInChunks } from '../http/responses/listResponse.ts';
import { presentEvent } from '../sessions/presenter.ts';

export interface ExportOptions {
  api: Pick<RouteContext, 'readModels' | 'store' | 'damaged'>;
  account_id: string;
  format: ExportFormat;
}

/** The recorded events of a session, one per line. */
async function* serializeEvents(
  { api, account_id }: ExportOptions,
  sessionId: string,
): AsyncGenerator<string, void> {
  const bounds = { limit: LIMITS.http.pageEntries, bytes: LIMITS.http.pageBytes };
  for (let after: number | undefined, more = true; more;) {
    await yieldToEventLoop(account_id);
    const cursor = after === undefined ? {} : { after };
    const page = await readSessionEvents(api, account_id, sessionId, { ...bounds, ...cursor });
    for (const event of page.rows) {
      yield* jsonSlices(presentEvent(event));
      yield '\n';
    }
    after = page.rows.at(-1)?.revision;
    more = page.more;
  }
}

/** A session as the writer of its format writes it. */
async function* writeSession(
  { api, account_id, write }: ExportOptions & { write: MakeWriter },
  sessionId: string,
  findAgentAt: FindAgentAt,
): AsyncGenerator<string, void> {
  const row = await findOwnSession(api, account_id, sessionId);
  if (row.status === 'erased') throw sessionErasedError();
  const writer = write(row);
  for await (const records of readRecords(api, row)) {
    await yieldToEventLoop(account_id);
    for (const record of records)
      yield* writer.add(record, record.kind === 'turn' ? await findAgentAt(record) : undefined);
  }
  yield* writer.end();
}

/** A session in the requested format. */
const formatSession = (
  options: ExportOptions,
  sessionId: string,
  findAgentAt: FindAgentAt,
): AsyncGenerator<string, void> =>
  options.format === 'events'
    ? serializeEvents(options, sessionId)
    : writeSession({ ...options, write: SESSION_WRITERS[options.format] }, sessionId, findAgentAt);

const isErasedOrUnknown = (error: unknown): boolean =>
  isTurnlogError(error, 'session_erased') || isTurnlogError(error, 'session_not_found');

/** Yields nothing for a session that was erased before any of its text was written. */
async function* skipErased(texts: AsyncGenerator<string, void>): AsyncGenerator<string, void> {
  let hasStarted = false;
  try {
    for await (const text of texts) {
      hasStarted = true;
      yield text;
    }
  } catch (error) {
    if (hasStarted || !isErasedOrUnknown(error)) throw error;
  }
}

/** The time for making texts between two yields to the event loop. */
const STEP_MS = 3;

/** Texts as bytes, a slice at a time, between other work. */
export async function* encode(
  texts: AsyncGenerator<string, void>,
  account_id: string,
): AsyncGenerator<Buffer, void> {
  let pending = '';
  let since = performance.now();
  for await (const text of texts) {
    pending += text;
    if (pending.length >= SLICE_BYTES) {
      yield* encodeInChunks(pending, account_id);
      pending = '';
    } else if (performance.now() - since < STEP_MS) continue;
    // Short texts may take long to make: those of tool calls whose arguments are parsed.
    else await yieldToEventLoop(account_id);
    since = performance.now();
  }
  yield* encodeInChunks(pending, account_id);
}

/** One session as bytes. */
export const serializeSession = (
  options: ExportOptions,
  sessionId: string,
): AsyncGenerator<Buffer, void> =>
  encode(formatSession(options, sessionId, createAgentReader(options.api)), options.account_id);

/** Sessions as bytes, one after the other, without those that were erased meanwhile. */
export function serializeSessions(
  options: ExportOptions,
  ids: AsyncIterable<string>,
): AsyncGenerator<Buffer, void> {
  const findAgentAt = createAgentReader(options.api);
  async function* texts(): AsyncGenerator<string, void> {
    for await (const id of ids) yield* skipErased(formatSession(options, id, findAgentAt));
  }
  return encode(texts(), options.account_id);
}
