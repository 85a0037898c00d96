import { join } from 'node:path';
import { startEventStoreDbProcess } from '../../servers/eventstoredb/eventStoreDbProcess.ts';
import { changeableLog, KINDS_OF_LOGS } from './logs.ts';

/** A node of EventStoreDB as a process, whose log is exchanged while it is down. */
export async function startNodeOnFile(folder: string) {
  const place = join(folder, 'node');
  let node = await startEventStoreDbProcess({ folder: place });
  const { port, connectionString } = node;
  const log = changeableLog(
    KINDS_OF_LOGS.find(({ name }) => name === 'EventStoreDB')!,
    place,
  );
  return {
    connectionString,
    copy: log.copy,
    wipe: () => log.cutAfter(undefined),
    /** Comes back on the same port with what the work has left. */
    async exchange(work: () => Promise<void>): Promise<void> {
      await node.kill();
      await work();
      node = await startEventStoreDbProcess({ folder: place, port });
    },
    close: () => node.kill(),
  };
}
