import type { Config } from '../../shared/config.ts';
import type { Logger } from '../../shared/logger.ts';
import { openEventStore } from './eventStore.ts';
import { opening } from './opening.ts';
import { openRelay } from './relay.ts';
import type { Turnlog } from '../server/turnlog.ts';

/** A relay on its own: it needs the log and Kafka, and no read models. Errors: `store_unavailable`, `configuration_invalid`. */
export const wireRelay = (config: Config, logger: Logger): Promise<Turnlog> =>
  opening(async (closeLater) => {
    const store = await openEventStore(
      { dataFolder: '', eventStoreDbUrl: config.EVENTSTOREDB_URL },
      logger,
    );
    closeLater(store.close);
    const relay = await openRelay(config, logger, store);
    closeLater(relay.close);
    return {
      store,
      api: undefined,
      projector: undefined,
      relay,
      dataFolder: undefined,
      projection: undefined,
      healing: () => undefined,
      damaged: undefined,
      closer: undefined,
      prepare: () => Promise.resolve(),
      sweep: () => Promise.resolve(),
    };
  });
