import { afterEach, beforeEach, expect } from '@jest/globals';
import type { StoredEvent } from '../../shared/ports/eventStore.ts';
import { reached, recordHistory } from '../support/builders/history.ts';
import type { ReadModelsFixture } from './readModels.ts';

/** Empty read models and a history for each test of a suite; to be called where its tests are described. */
export function freshReadModels(open: () => Promise<ReadModelsFixture>) {
  let fixture: ReadModelsFixture;
  let history: ReturnType<typeof recordHistory>;
  beforeEach(async () => {
    fixture = await open();
    history = recordHistory();
  });
  afterEach(() => fixture.close());
  return {
    get store() {
      return fixture.store;
    },
    get readModels() {
      return fixture.readModels;
    },
    record: (...told: Parameters<(typeof history)['record']>): StoredEvent =>
      history.record(...told),
    /** Applies events, none of which is parked, and says that there are no more. */
    async apply(...events: StoredEvent[]): Promise<void> {
      const { position } = events.at(-1)!;
      expect(await fixture.store.apply(events, reached(position))).toEqual([]);
      fixture.announce(position, true);
    },
  };
}
