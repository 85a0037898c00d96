import type { ReplaySettings } from './events.ts';
import { createTextOpener } from '../eventlog/encryption/encryptedText.ts';
import type { ReadingKeys } from '../eventlog/encryption/keyring.ts';
import { isOwnStream } from '../eventlog/reading/streamOwner.ts';
import type { EventLog } from '../ports/eventStore.ts';
import { isIdOf, replayStream } from '../eventlog/streams.ts';
import type { ReadModels } from '../ports/readModels.ts';
import type { ReplayRow } from '../readModels/tables.ts';
import { replayNotFoundError } from './errors.ts';

interface OwnSource {
  store: Pick<EventLog, 'readStream'>;
  readModels: Pick<ReadModels, 'findReplay'>;
}

/** Requires that a row is the account's and not erased. Throws `replay_not_found`. */
export function requireVisibleReplay<Row extends Pick<ReplayRow, 'account_id' | 'status'>>(
  row: Row | undefined,
  accountId: string,
): Row {
  if (!row || row.account_id !== accountId || row.status === 'erased') throw replayNotFoundError();
  return row;
}

/** The account's replay with this id, by its row and by the log. Errors: `replay_not_found`, `store_unavailable`. */
export async function findOwnReplay(
  source: OwnSource,
  accountId: string,
  replayId: string,
): Promise<ReplayRow> {
  const replayRow = isIdOf('replay', replayId)
    ? await source.readModels.findReplay(replayId)
    : undefined;
  const row = requireVisibleReplay(replayRow, accountId);
  const isOwn = await isOwnStream(source, accountId, replayStream(replayId), async () => row);
  if (!isOwn) throw replayNotFoundError();
  return row;
}

/**
 * The decrypted settings of a replay. Errors: `replay_not_found` if they are erased, `key_missing`,
 * `store_unavailable`.
 */
export async function readReplaySettings(
  {
    store,
    readModels,
  }: { store: { keys: ReadingKeys }; readModels: Pick<ReadModels, 'findReplaySettings'> },
  { replay_id }: Pick<ReplayRow, 'replay_id'>,
): Promise<ReplaySettings> {
  const row = await readModels.findReplaySettings(replay_id);
  if (!row) throw replayNotFoundError();
  const { settings } = row;
  const { instruction, checks } = settings;
  const texts = [instruction, checks].filter((text) => text !== undefined);
  const open = await createTextOpener(store.keys, replayStream(replay_id), texts);
  return {
    ...settings,
    ...(instruction !== undefined && { instruction: open(instruction) }),
    ...(checks !== undefined && { checks: open(checks) }),
  };
}
