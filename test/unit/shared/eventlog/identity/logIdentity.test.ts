import { expect, test } from '@jest/globals';
import { readLogEvents } from '../../../../../shared/eventlog/identity/logIdentity.ts';
import type { StoredEvent } from '../../../../../shared/ports/eventStore.ts';

const MIB = 1024 * 1024;
/** More pages than the limits allow; without limits, the read would not end. */
const TOO_MANY_READS = 50;

/** A log whose own stream never ends. */
function endlessLog(pageEvents: number, data: string) {
  let reads = 0;
  const eventAt = (revision: number) =>
    ({ id: 'first', stream: 'log-first', revision, type: 't', data, metadata: '' }) as StoredEvent;
  return {
    firstEvent: async () => eventAt(0),
    async readStream(_stream: string, { from = 0 }: { from?: number }) {
      reads += 1;
      if (reads > TOO_MANY_READS) throw new Error('the read does not end');
      return Array.from({ length: pageEvents }, (_, index) => eventAt(from + index));
    },
  };
}

test.each([
  ['events', 1_000, '{}'],
  ['bytes', 2, 'x'.repeat(MIB)],
])('a log whose own stream has too many %s is damaged', async (_what, pageEvents, data) => {
  await expect(readLogEvents(endlessLog(pageEvents, data))).rejects.toMatchObject({
    code: 'stream_damaged',
    message: 'The stream log-first is damaged: it has more than 10000 events or 16777216 bytes.',
  });
});
