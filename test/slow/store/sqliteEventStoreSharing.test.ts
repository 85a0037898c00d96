import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { acquireServerLock } from '../../../infra/sqlite/serverLock.ts';
import {
  appendEach,
  expectStrictlyAscending,
  follow,
  holds,
  idsOf,
  newEvents,
  newStream,
  onlyOf,
  readAll,
} from '../../contracts/eventStore/support.ts';
import { sqliteEventStoreFixture } from '../../support/stores/sqlite/sqliteEventStore.ts';

const script = fileURLToPath(
  new URL('../../support/stores/sqlite/sqliteProcess.ts', import.meta.url),
);
const run = (...args: string[]) =>
  spawn(process.execPath, [script, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });

describe('a data folder that several use', () => {
  let fixture: Awaited<ReturnType<typeof sqliteEventStoreFixture>>;
  beforeEach(async () => {
    fixture = await sqliteEventStoreFixture();
  });
  afterEach(() => fixture.dispose());

  test('takes appends of other processes beside its own, in one order that a subscription follows', async () => {
    const store = fixture.store();
    const shared = newStream();
    const own = newStream();
    const subscription = follow(store, undefined);
    const following = subscription.until(holds([shared, own], 160));
    const others = [
      run('append', fixture.folder, shared, '50'),
      run('append', fixture.folder, shared, '50'),
    ];
    const exits = Promise.all(others.map((other) => once(other, 'exit')));
    await appendEach(store, own, newEvents(60));
    expect(await exits).toEqual([
      [0, null],
      [0, null],
    ]);
    const events = onlyOf([shared, own], await following);
    subscription.stop();
    expectStrictlyAscending(events.map((event) => event.position));
    expect(
      events.filter((event) => event.stream === shared).map((event) => event.revision),
    ).toEqual([...Array(100).keys()]);
    expect(idsOf(events.filter((event) => event.stream === own))).toEqual(
      idsOf(await readAll(store, own)),
    );
  });

  test('tells a subscription that waits what another process has appended', async () => {
    const store = fixture.store();
    const subscription = follow(store, undefined);
    expect((await subscription.next()).value).toEqual({
      events: [],
      position: undefined,
      caughtUp: true,
    });
    const waiting = subscription.next();
    const stream = newStream();
    const exit = once(run('append', fixture.folder, stream, '1'), 'exit');
    expect((await waiting).value).toMatchObject({
      events: [{ stream, revision: 0 }],
      caughtUp: true,
    });
    expect(await exit).toEqual([0, null]);
    subscription.stop();
  });

  test('ends a batch of large events early, and the next one goes on from there', async () => {
    const data = JSON.stringify('x'.repeat(1_000_000));
    const events = newEvents(30).map((event) => ({ ...event, data }));
    await appendEach(fixture.store(), newStream(), events);
    const subscription = follow(fixture.store(), undefined);
    const batches = await subscription.until((_, batch) => batch.caughtUp);
    subscription.stop();
    expect(batches.map((batch) => batch.events.length)).toEqual(Array(10).fill(3));
    expect(batches.flatMap((batch) => idsOf(batch.events))).toEqual(idsOf(events));
  });

  test('lets go of a subscription that waits at once when it is aborted, not at its next look at the log', async () => {
    const subscription = follow(fixture.store(), undefined);
    await subscription.next();
    let ended = false;
    const waiting = subscription.next().then(() => (ended = true));
    await setTimeout(5);
    subscription.stop();
    await setImmediate();
    expect(ended).toBe(true);
    await waiting;
  });

  test('can be followed from another thread, which hears of every append of this one', async () => {
    const thread = new Worker(
      new URL('../../support/stores/projections/followingThread.ts', import.meta.url),
      {
        workerData: { folder: fixture.folder },
      },
    );
    expect(await once(thread, 'message')).toEqual([[]]);
    const [first] = newEvents(1);
    // So many round trips that polling alone would run into the test's time limit.
    const events = [first, ...newEvents(399)].flatMap((event) => event ?? []);
    const stream = newStream();
    for (const [index, event] of events.entries()) {
      const heard = once(thread, 'message');
      await fixture.store().append(stream, index === 0 ? 'no_stream' : index - 1, [event]);
      expect(await heard).toEqual([[event.id]]);
    }
    thread.postMessage('stop');
    expect(await once(thread, 'exit')).toEqual([0]);
  });

  test('admits one server only, whose name for the folder is told to the next, until it ends by itself', () => {
    const lock = acquireServerLock(fixture.folder);
    const refusal = {
      code: 'data_folder_in_use',
      message: expect.stringContaining(fixture.folder),
    };
    expect(() => acquireServerLock(fixture.folder)).toThrow(expect.objectContaining(refusal));
    lock.release();
    acquireServerLock(fixture.folder).release();
  });

  test('is free again as soon as its server was killed, however hard', async () => {
    const server = run('lock', fixture.folder);
    await once(server.stdout, 'data');
    expect(() => acquireServerLock(fixture.folder)).toThrow(
      expect.objectContaining({ code: 'data_folder_in_use' }),
    );
    await appendEach(fixture.store(), newStream(), newEvents(2));
    const exit = once(server, 'exit');
    server.kill('SIGKILL');
    expect(await exit).toEqual([null, 'SIGKILL']);
    acquireServerLock(fixture.folder).release();
  });
});
