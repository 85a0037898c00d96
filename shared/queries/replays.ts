import { isIdOf } from '../eventlog/streams.ts';
import type { ReadModels } from '../ports/readModels.ts';
import type { ReplayRow } from '../readModels/tables.ts';
import { replayNotFound } from '../replays.ts';

/** The account's replay of that id. Errors: `replay_not_found`, `store_unavailable`. */
export async function ownReplay(
  { readModels }: { readModels: Pick<ReadModels, 'findReplay'> },
  accountId: string,
  replayId: string,
): Promise<ReplayRow> {
  const row = isIdOf('replay', replayId) ? await readModels.findReplay(replayId) : undefined;
  if (!row || row.account_id !== accountId || row.status === 'erased') throw replayNotFound();
  return row;
}
