import type { ServerResponse } from 'node:http';
import type { Context } from 'koa';
import { sessionStream } from '../../../shared/eventlog/streams.ts';
import { waitToBegin } from '../../../shared/lib/concurrency/pacedSteps.ts';
import type { TurnRow } from '../../../shared/readModels/tables.ts';
import type { AccountTurn } from '../../../shared/runs/live/liveTurns.ts';
import type { TurnSnapshot } from '../../../shared/runs/live/followTurn.ts';
import { buildRecordedTurn } from '../../../shared/sessions/turns/recordedTurn.ts';
import { readTurn } from '../../../shared/sessions/turns/turn.ts';
import type { RouteContext } from '../context.ts';
import { onResponseClosed } from '../http/connection/clientDisconnect.ts';
import { readHoldingMemory, readWithinGrowingMemory } from '../http/responses/growingMemory.ts';
import { PAGE_BUFFER_BYTES } from '../http/responses/listResponse.ts';
import type { SseEvent } from '../http/responses/sse.ts';

/** Memory per stored byte of an event while it is read: decrypted, as text, and as sent. */
export const MEMORY_PER_EVENT_BYTE = 4;

/** Memory per stored byte of a turn that is streamed: as text, and the event that is sent. */
const STREAM_MEMORY_PER_BYTE = 3;

/** Reads a turn and makes its response, within memory that grows with the turn. */
export const readTurnWithinMemory = <Result>(
  api: RouteContext,
  subject: AccountTurn,
  ctx: Context,
  respond: (row: TurnRow) => Promise<Result>,
): Promise<Result> => {
  const { account_id } = subject;
  const target = { account_id, response: ctx.res, bytes: PAGE_BUFFER_BYTES };
  return readWithinGrowingMemory(api, target, async (grow) => {
    // Clients that wait for the end of one turn read it all at once.
    await waitToBegin(account_id);
    return respond(await readTurn(api, subject, (bytes) => grow(MEMORY_PER_EVENT_BYTE * bytes)));
  });
};

/** The record of a turn, and the stream of the session that recorded it. */
export interface TurnRecord extends TurnSnapshot {
  stream: string;
}

/** Reads the record of a turn within memory that grows with it, and keeps what its texts need. */
export async function readTurnRecord(
  api: RouteContext,
  subject: AccountTurn,
  ctx: Context,
): Promise<TurnRecord> {
  const { account_id, session_id } = subject;
  const target = { account_id, response: ctx.res, bytes: PAGE_BUFFER_BYTES };
  let storedBytes = 0;
  const held = await readHoldingMemory(api, target, async (grow) => {
    // Followers may read the record of a turn all at once, when it has ended.
    await waitToBegin(account_id);
    const row = await readTurn(api, subject, (bytes) => {
      grow(MEMORY_PER_EVENT_BYTE * bytes);
      storedBytes = bytes;
    });
    // In a fork, a shared turn appears as the fork's own.
    return {
      turn: buildRecordedTurn({ ...row, session_id }),
      stream: sessionStream(row.session_id),
    };
  });
  held.shrinkTo(STREAM_MEMORY_PER_BYTE * storedBytes);
  return { ...held.result, done: held.release };
}

/** The memory of the last event of a turn until it is sent: its text, its JSON, and the bytes. */
export const memoryOfEnd = ({ data }: SseEvent): number =>
  STREAM_MEMORY_PER_BYTE * Buffer.byteLength(data);

/** The responses that send the result of a live turn, and have its event in common. */
const sharingResponses = new WeakMap<object, Set<ServerResponse>>();

/**
 * Counts the memory of the result of a live turn until all responses that share it are sent: one of them
 * holds it. Resolves when the response may be sent.
 */
export async function holdSharedResult(
  { responseMemory }: RouteContext,
  account_id: string,
  { result, bytes }: { result: object; bytes: number },
  response: ServerResponse,
): Promise<void> {
  const sharing = sharingResponses.get(result) ?? new Set();
  sharingResponses.set(result, sharing.add(response));
  if (sharing.size === 1) await responseMemory.holdUntilSent(account_id, bytes, response);
  // The memory of a response that has closed is released before.
  onResponseClosed(response, () => {
    const [holder] = sharing;
    sharing.delete(response);
    const [next] = sharing;
    if (holder === response && next) void responseMemory.holdUntilSent(account_id, bytes, next);
  });
}
