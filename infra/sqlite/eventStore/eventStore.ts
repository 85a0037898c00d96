import { requireAppendable } from '../../../shared/eventlog/appendLimits.ts';
import type { EventStore } from '../../../shared/ports/eventStore.ts';
import { scanAccountId } from '../../../shared/storage/projection.ts';
import { dataFolderError } from '../dataFolder.ts';
import { createPrivateFile, eventLogFile, openForWriting } from './database.ts';
import { openSqliteEventLog } from './log.ts';
import { openReader, toPosition } from './reader.ts';
import { unwritableReason } from './unwritable.ts';
import { startWriterThread } from './writerThread.ts';

/**
 * Opens the event store in `<folder>/events.db`, and creates it with owner-only permissions if it
 * does not exist. Several processes may open it. Throws a `store_unavailable` that is not retriable
 * if the file is damaged or from a newer version of Turnlog, and `configuration_invalid` if it
 * can't be created.
 */
export async function openSqliteEventStore({ folder }: { folder: string }): Promise<EventStore> {
  const file = eventLogFile(folder);
  try {
    createPrivateFile(folder, file);
  } catch (error) {
    throw dataFolderError(folder, error);
  }
  const migrated = openForWriting(file);
  const reader = openReader(file);
  migrated.close();
  const log = openSqliteEventLog({ folder }, reader);
  const writer = startWriterThread(file, reader.files);
  let closed: Promise<void> | undefined;

  async function close(): Promise<void> {
    // The writer closes last: the last connection checkpoints the write-ahead log into events.db,
    // which a read-only connection can't do.
    await Promise.all([log.close(), writer.close()]);
  }

  return {
    ...log,
    async append(stream, expected, events) {
      const bytes = requireAppendable(events);
      const account_id = (events[0] && scanAccountId(events[0])) ?? '';
      const { revision, position } = await writer.append(
        { stream, expected, events },
        { account_id, bytes },
      );
      return { revision, position: toPosition(position) };
    },
    trouble() {
      const reason = unwritableReason(file);
      return (
        log.trouble() ?? (reason && `Nothing can be written to the event log ${file}: ${reason}.`)
      );
    },
    close: () => (closed ??= close()),
  };
}
