import { requireAppendable } from '../../../shared/eventlog/appendLimits.ts';
import type { EventStore } from '../../../shared/ports/eventStore.ts';
import { dataFolderError } from '../dataFolder.ts';
import { createPrivateFile, eventLogFile, openForWriting } from './database.ts';
import { openSqliteEventLog } from './log.ts';
import { openReader, toPosition } from './reader.ts';
import { unwritableReason } from './fileIdentity.ts';
import { startWriterThread } from './writerThread.ts';

/**
 * The event store in `<folder>/events.db`, created with owner-only permissions when it is not
 * there. Several processes may have it open. Errors: `store_unavailable`, not retriable, when the
 * file is damaged or from a newer version of Turnlog; `configuration_invalid` when it can't be made.
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
    // The writer goes last: the last connection tidies the write-ahead log into events.db, and a
    // reading one can't.
    await Promise.all([log.close(), writer.close()]);
  }

  return {
    ...log,
    async append(stream, expected, events) {
      const bytes = requireAppendable(events);
      const { revision, position } = await writer.append({ stream, expected, events }, bytes);
      return { revision, position: toPosition(position) };
    },
    trouble() {
      const why = unwritableReason(file);
      return log.trouble() ?? (why && `Nothing can be written to the event log ${file}: ${why}.`);
    },
    close: () => (closed ??= close()),
  };
}
