import { EventEmitter } from 'node:events';
import { afterEach, expect, test } from '@jest/globals';
import {
  createWorkerClient,
  WorkerTimeout,
  type WorkerClient,
} from '../../../../../shared/lib/concurrency/workerClient.ts';

let client: WorkerClient<string, string> | undefined;
afterEach(async () => {
  await client?.[Symbol.asyncDispose]();
});

const outOfMemory = Object.assign(new Error('full'), { code: 'ERR_WORKER_OUT_OF_MEMORY' });

/**
 * Threads that answer at once, except for questions that begin with `endless`. `full` exceeds the
 * memory of a thread, and `defect` throws.
 */
function createThreads() {
  const threads: { questions: string[] }[] = [];
  const start = () => {
    const thread = new EventEmitter();
    const questions: string[] = [];
    threads.push({ questions });
    const fail = (error: Error): void => {
      thread.emit('error', error);
      thread.emit('exit', 1);
    };
    setImmediate(() => thread.emit('message', 'ready'));
    return Object.assign(thread, {
      postMessage(question: unknown) {
        questions.push(String(question));
        if (question === 'full') setImmediate(fail, outOfMemory);
        else if (question === 'defect') setImmediate(fail, new Error('defect'));
        else if (!String(question).startsWith('endless'))
          setImmediate(() =>
            thread.emit('message', {
              answer: `answer to ${String(question)}`,
              cpuMs: question === 'heavy' ? 500 : 1,
            }),
          );
      },
      terminate: () =>
        new Promise((resolve) =>
          setImmediate(() => {
            thread.emit('exit', 1);
            resolve(1);
          }),
        ),
      unref: () => undefined,
    });
  };
  return { threads, start };
}

const options = { name: 'test', waitMs: 60_000, threads: 2, slowMs: 100, slowForMs: 60_000 };
const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

test('answers one account while endless requests of another are running', async () => {
  const { start, threads } = createThreads();
  client = createWorkerClient({ ...options, start, withinMs: 60_000 });
  for (let n = 0; n < 4; n += 1)
    void client.request(`endless ${n}`, 'hostile').catch(() => undefined);
  await turns(10);
  expect(await client.request('a', 'honest')).toBe('answer to a');
  expect(await client.request('b', 'honest')).toBe('answer to b');
  expect(threads.map(({ questions }) => questions)).toEqual([['endless 0'], ['a', 'b']]);
});

test('leaves a thread to other accounts, however many have had slow requests', async () => {
  const { start } = createThreads();
  client = createWorkerClient({ ...options, start, withinMs: 150 });
  const hostile = ['h1', 'h2', 'h3'];
  const first = await Promise.all(
    hostile.map((account) =>
      client!.request('endless', account).catch((error: unknown) => error instanceof WorkerTimeout),
    ),
  );
  expect(first).toEqual([true, true, true]);
  let ended = 0;
  const later = hostile.flatMap((account) =>
    [1, 2, 3].map((n) => client!.request(`endless ${n}`, account).catch(() => void (ended += 1))),
  );
  await turns(10);
  expect(await client.request('a', 'honest')).toBe('answer to a');
  expect(ended).toBe(0);
  await client[Symbol.asyncDispose]();
  await Promise.all(later);
});

test('counts an account as slow by the processor time of its requests', async () => {
  const { start } = createThreads();
  client = createWorkerClient({ ...options, start, withinMs: 60_000 });
  await Promise.all(['h1', 'h2'].map((account) => client!.request('heavy', account)));
  for (const account of ['h1', 'h2'])
    void client.request('endless', account).catch(() => undefined);
  await turns(10);
  expect(await client.request('a', 'honest')).toBe('answer to a');
});

test('the first slow request of an account leaves its thread to others', async () => {
  const { start, threads } = createThreads();
  client = createWorkerClient({ ...options, slowMs: 10, start, withinMs: 60_000 });
  await client.request('heavy', 'slow');
  const requests = [
    client.request('endless known', 'slow'),
    client.request('endless first', 'new'),
  ].map((request) => request.catch(() => 'ended'));
  await turns(10);
  expect(threads.map(({ questions }) => questions.at(-1))).toEqual([
    'endless first',
    'endless known',
  ]);
  expect(await client.request('a', 'honest')).toBe('answer to a');
  expect(await client.request('b', 'other')).toBe('answer to b');
  await client[Symbol.asyncDispose]();
  expect(await Promise.all(requests)).toEqual(['ended', 'ended']);
});

test('a request that has run for long is not sent again', async () => {
  const { start, threads } = createThreads();
  client = createWorkerClient({ ...options, slowMs: 10, start, withinMs: 60_000 });
  await client.request('heavy', 'slow');
  const send = (question: string, account: string) =>
    client!.request(question, account).catch(() => 'ended');
  const requests = [send('endless known', 'slow'), send('endless first', 'new')];
  await new Promise((resolve) => setTimeout(resolve, 150));
  requests.push(send('a', 'honest'));
  await new Promise((resolve) => setTimeout(resolve, 100));
  const sent = threads.flatMap(({ questions }) => questions);
  expect(sent.toSorted()).toEqual(['endless first', 'endless known', 'heavy']);
  await client[Symbol.asyncDispose]();
  expect(await Promise.all(requests)).toEqual(['ended', 'ended', 'ended']);
});

test('a request that is sent again waits as long as any other', async () => {
  const { start } = createThreads();
  client = createWorkerClient({ ...options, slowMs: 50, waitMs: 250, start, withinMs: 300 });
  await client.request('heavy', 'slow');
  const known = client.request('endless known', 'slow').catch(() => 'ended');
  const first = client.request('endless first', 'new').catch((error: unknown) => error);
  await turns(10);
  expect(await client.request('a', 'honest')).toBe('answer to a');
  expect(await known).toBe('ended');
  expect(await first).toBeInstanceOf(WorkerTimeout);
});

test('a first slow request goes on while no other account waits', async () => {
  const { start, threads } = createThreads();
  client = createWorkerClient({ ...options, slowMs: 10, start, withinMs: 60_000 });
  const first = client.request('endless', 'new').catch(() => 'ended');
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(await client.request('a', 'honest')).toBe('answer to a');
  // The second slow account waits, and leaves the thread that the first one does not use.
  const second = client.request('endless', 'slow').catch(() => 'ended');
  await turns(10);
  expect(await client.request('b', 'honest')).toBe('answer to b');
  expect(threads[0]!.questions).toEqual(['endless']);
  await client[Symbol.asyncDispose]();
  expect(await Promise.all([first, second])).toEqual(['ended', 'ended']);
});

test('makes the queued requests of an account wait behind others once one was slow', async () => {
  const { start } = createThreads();
  client = createWorkerClient({ ...options, start, withinMs: 150 });
  const queued = ['h1', 'h2'].flatMap((account) =>
    [1, 2, 3].map((n) => client!.request(`endless ${n}`, account).catch(() => 'ended')),
  );
  let ended = 0;
  for (const request of queued) void request.then(() => (ended += 1));
  // Both accounts occupy a thread, and have two more requests each in the queue.
  await Promise.all([queued[0], queued[3]]);
  expect(await client.request('a', 'honest')).toBe('answer to a');
  expect(ended).toBe(2);
  await client[Symbol.asyncDispose]();
  await Promise.all(queued);
});

test('gives an account its turn at once when its requests are quick', async () => {
  const { start, threads } = createThreads();
  client = createWorkerClient({ ...options, start, withinMs: 60_000 });
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => client!.request(`${n}`, 'busy')),
  );
  expect(answers).toHaveLength(20);
  expect(threads).toHaveLength(1);
});

test('a request that exceeds the memory of its thread has failed like one that takes too long', async () => {
  const { start, threads } = createThreads();
  client = createWorkerClient({ ...options, start, withinMs: 60_000 });
  const full = client.request('full', 'a');
  await expect(full).rejects.toBeInstanceOf(WorkerTimeout);
  await expect(full).rejects.toMatchObject({ cause: outOfMemory });
  await expect(client.request('defect', 'b')).rejects.toThrow('defect');
  expect(await client.request('c', 'c')).toBe('answer to c');
  expect(threads).toHaveLength(3);
});

test('starts a thread anew after it could not be started', async () => {
  const { start } = createThreads();
  const starts = [
    () => {
      throw new Error('no memory for a thread');
    },
    start,
  ];
  client = createWorkerClient({ ...options, start: () => starts.shift()!(), withinMs: 60_000 });
  await expect(client.request('a', 'a')).rejects.toThrow('no memory for a thread');
  expect(await client.request('a', 'a')).toBe('answer to a');
});
