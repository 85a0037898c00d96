import type { Context } from 'koa';
import { waitToBegin } from '../../../shared/lib/concurrency/pacedSteps.ts';
import type { TurnRow } from '../../../shared/readModels/tables.ts';
import type { AccountTurn } from '../../../shared/runs/live/liveTurns.ts';
import type { TurnSnapshot } from '../../../shared/runs/live/followTurn.ts';
import { recordedTurn } from '../../../shared/sessions/turns/recordedTurn.ts';
import { readTurn } from '../../../shared/sessions/turns/turn.ts';
import type { RouteContext } from '../context.ts';
import { readHoldingMemory, readWithinGrowingMemory } from '../http/responses/growingMemory.ts';
import { PAGE_BUFFER_BYTES } from '../http/responses/listResponse.ts';

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

/** Reads the record of a turn within memory that grows with it, and keeps what its texts need. */
export async function readTurnRecord(
  api: RouteContext,
  subject: AccountTurn,
  ctx: Context,
): Promise<TurnSnapshot> {
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
    return recordedTurn({ ...row, session_id });
  });
  held.shrinkTo(STREAM_MEMORY_PER_BYTE * storedBytes);
  return { turn: held.result, done: held.release };
}
