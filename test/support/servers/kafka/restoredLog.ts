import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { openSqliteEventStore } from '../../../../infra/sqlite/eventStore/eventStore.ts';
import { readLogIdentity, logIdAt } from '../../../../shared/eventlog/identity/logIdentity.ts';
import { logStream } from '../../../../shared/eventlog/streams.ts';
import type { EventStore } from '../../../../shared/ports/eventStore.ts';
import { appendTo } from '../../stores/projections/projector.ts';
import type { Received } from './kafkaConsumer.ts';

/** A log of which a copy is kept, and put back. */
export async function restorableLog(folder: string) {
  const [live, copy] = ['log', 'copy'].map((name) => join(folder, name)) as [string, string];
  let store = await openSqliteEventStore({ folder: live });
  async function exchange(work: () => Promise<void>): Promise<void> {
    await store.close();
    await work();
    store = await openSqliteEventStore({ folder: live });
  }
  return {
    folder: live,
    store: (): EventStore => store,
    backUp: () => exchange(() => cp(live, copy, { recursive: true })),
    restore: () =>
      exchange(async () => {
        await rm(live, { recursive: true });
        await cp(copy, live, { recursive: true });
      }),
    /** Resolves with the id that the log has from then on. */
    async accept(): Promise<string> {
      const identity = (await readLogIdentity(store))!;
      const data = { reason: 'restored', replaces: [logIdAt(identity)] };
      await appendTo(store, logStream(identity.root), [{ type: 'log.restore_accepted.v1', data }]);
      return logIdAt((await readLogIdentity(store))!);
    },
    close: () => store.close(),
  };
}

/** The id of the event of each message; of a dead letter, the one that it names. */
export const idsOf = (received: readonly Received[]): string[] =>
  received.map(
    ({ headers, value }) =>
      headers['ce_id'] ?? (JSON.parse(value!) as { event_id: string }).event_id,
  );
