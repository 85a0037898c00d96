import { expect, test } from '@jest/globals';
import { createMemoryTopics } from '../support/fakes/memoryTopics.ts';
import { publisherContract } from './publisher.ts';

publisherContract('a publisher in memory', async () => {
  const { createPublisher } = createMemoryTopics();
  return { open: () => createPublisher().publisher, dispose: async () => undefined };
});

test('while topics in memory fail, every call does', async () => {
  const { state, createPublisher } = createMemoryTopics();
  const { publisher } = createPublisher();
  const sessions = [await publisher.takeOver(), await publisher.takeOver()];
  state.isFailing = true;
  const { signal } = new AbortController();
  const calls = [
    publisher.takeOver(),
    publisher.checkpoint(),
    publisher.lost(),
    publisher.activity(),
    publisher.isEmpty(),
    sessions[0]!.visitPublished(() => undefined, signal),
    sessions[1]!.beat(),
  ];
  for (const call of calls)
    await expect(call).rejects.toMatchObject({ code: 'publisher_unavailable' });
  state.isFailing = false;
  // A session of which a call has failed is over.
  await expect(sessions[1]!.beat()).rejects.toMatchObject({ code: 'publisher_unavailable' });
});
