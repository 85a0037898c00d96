// Jest knows how long a test file takes where it has run it before. On a fresh clone it goes by
// size, and would begin the files that wait longest, which are short, at the very end.
import Sequencer from '@jest/test-sequencer';

const LONGEST = [
  'faults/hostile.test.ts',
  'forger/rewrittenSession.test.ts',
  'forger/changedRows.test.ts',
  'faults/rollingUpgrade.test.ts',
  'forger/forgedTree.test.ts',
  'faults/turnsLeftOpen.test.ts',
  'faults/replicaTruth.test.ts',
  'faults/relayFaults.test.ts',
  'faults/serviceOnCluster.test.ts',
  'kafka/restoredLogKills.test.ts',
  'postgres/api.test.ts',
  'kafka/recipes.test.ts',
  'eventstoredb/api.test.ts',
  'replicas/changedLog.test.ts',
  'eventstoredb/records.test.ts',
  'process/console.test.ts',
  'docs/commands.test.ts',
  'http/exportReaders.test.ts',
  'process/shutdown.test.ts',
  'process/changedLog.test.ts',
  'slow/store/damagedStreams.test.ts',
  'slow/http/property.test.ts',
  'cli/erase.test.ts',
  'middleware/slowClients.test.ts',
  'console/build.test.ts',
  'http/keyManagement.test.ts',
  'http/chatTokens.test.ts',
  'webhooks/webhooks.test.ts',
  'runs/streams.test.ts',
  'runs/modelFaults.test.ts',
  'runs/models.test.ts',
  'http/forkRequests.test.ts',
  'replays/replays.test.ts',
  'integration/http/exports.test.ts',
  'slow/cli/replay.test.ts',
  'projections/changedLog.test.ts',
  'proof/makeBundle.test.ts',
  'http/feed.test.ts',
  'thread/stdioTransport.test.ts',
  'web/pages.test.ts',
  'integration/http/keys.test.ts',
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
