import type { Config } from '../../shared/config.ts';
import type { DamagedStreams } from '../../shared/eventlog/damagedStreams.ts';
import type { Logger } from '../../shared/logger.ts';
import type { EventStore } from '../../shared/ports/eventStore.ts';
import type { ServiceName } from '../server/serviceNames.ts';
import type { Part, Turnlog } from '../server/turnlog.ts';
import { openEventStore } from './eventStore.ts';
import type { LogPlace } from './place.ts';

/**
 * What the parts of a process are opened with, and where each of them is kept, to be closed in
 * reverse order.
 */
export interface Opening {
  config: Config;
  logger: Logger;
  services: readonly ServiceName[];
  opened: AsyncDisposableStack;
}

/** What was opened, as long as somebody else sees to closing it. */
export type Parts = Omit<Turnlog, keyof AsyncDisposable>;

/** The event store of a process. Errors: those of its adapter. */
export const openStore = async ({ opened, logger }: Opening, log: LogPlace): Promise<EventStore> =>
  opened.adopt(await openEventStore(log, logger), (store) => store.close());

/** The streams that this process found not to be whole, as an operator is told of them. */
export const damagePart = (damaged: DamagedStreams): Part => ({
  health: async () => ({ damaged_streams: damaged.list(), damaged_count: damaged.count() }),
});
