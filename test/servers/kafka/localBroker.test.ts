import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { afterAll, expect, test } from '@jest/globals';
import { createLocalBroker } from '../../../infra/local/kafka/localBroker.ts';
import { orSkip } from '../../support/servers/kafka/kafkaServer.ts';
import { administer } from '../../support/servers/kafka/kafkaTopics.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const folder = await temporaryFolder();
const first = await orSkip(() => createLocalBroker({ folder }));
const onKafka = first ? test : test.skip;

afterAll(async () => rm(folder, { recursive: true }));

// As `npm run kafka` does, whose data folder stays.
onKafka(
  'a broker that is made in the folder of an earlier one has its topics, and none is made while that one runs',
  async () => {
    await first?.start();
    await administer(first?.brokers ?? '', (admin) =>
      admin.createTopics({ topics: [{ topic: 'kept', numPartitions: 1 }], waitForLeaders: false }),
    );
    await expect(createLocalBroker({ folder })).rejects.toMatchObject({
      code: 'local_server_failed',
      message: expect.stringContaining('EADDRINUSE'),
    });
    await first?.stop();

    const second = await createLocalBroker({ folder });
    await second.start();
    try {
      expect(await administer(second.brokers, (admin) => admin.listTopics())).toContain('kept');
    } finally {
      await second.stop();
    }
  },
  120_000,
);

// Otherwise whoever listens there already would be taken for it.
onKafka('a broker is not made on a port that is taken', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  await expect(
    createLocalBroker({ folder, port: (other.address() as AddressInfo).port }),
  ).rejects.toMatchObject({
    code: 'local_server_failed',
    message: expect.stringContaining('EADDRINUSE'),
  });
  other.close();
});
