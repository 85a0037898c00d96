// Jest knows how long a test file takes where it has run it before. On a fresh clone it goes by
// size, and would begin the files that wait longest, which are short, at the very end.
import Sequencer from '@jest/test-sequencer';

const LONGEST = [
  'store/eventStoreDbRecords.test.ts',
  'store/damagedStreams.test.ts',
  'store/onEventStoreDb.test.ts',
  'replicas/onPostgres.test.ts',
  'relay/recipes.test.ts',
  'relay/kafkaRelay.test.ts',
  'projections/changedLogProperty.test.ts',
  'projections/changedLog.test.ts',
  'projections/postgresChangedLog.test.ts',
  'process/shutdown.test.ts',
  'commands/recordInRun.test.ts',
  'cli/events.test.ts',
  'cli/keys.test.ts',
  'store/eventStoreDbTrouble.test.ts',
  'projections/postgresProjector.test.ts',
  'replicas/replicas.test.ts',
  'relay/kafkaSecurity.test.ts',
  'relay/relayService.test.ts',
  'relay/localBroker.test.ts',
  'store/killsOnEventStoreDb.test.ts',
];

const place = ({ path }) => {
  const index = LONGEST.findIndex((name) => path.endsWith(name));
  return index === -1 ? LONGEST.length : index;
};

export default class LongestFirst extends Sequencer {
  sort(tests) {
    // oxlint-disable-next-line unicorn/no-array-sort -- It is the sequencer's own.
    const sorted = super.sort(tests);
    return sorted.toSorted((a, b) => place(a) - place(b));
  }
}
