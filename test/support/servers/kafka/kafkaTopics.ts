import { setTimeout as sleep } from 'node:timers/promises';
import { Kafka, logLevel, type Admin } from 'kafkajs';

const LOOK_MS = 50;

/** Runs one piece of administration of a test. */
export async function administer<Result>(
  brokers: string,
  work: (admin: Admin) => Promise<Result>,
): Promise<Result> {
  const admin = new Kafka({
    brokers: brokers.split(','),
    clientId: 'test-admin',
    logLevel: logLevel.NOTHING,
  }).admin();
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.disconnect();
  }
}

/** Resolves when somebody has created the topics. */
export const untilTopicsExist = (brokers: string, topics: readonly string[]): Promise<void> =>
  administer(brokers, async (admin) => {
    for (;;) {
      const existing = new Set(await admin.listTopics());
      if (topics.every((topic) => existing.has(topic))) return;
      await sleep(LOOK_MS);
    }
  });
