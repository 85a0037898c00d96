/**
 * The cluster that stands in for EventStoreDB's, seen without a client library: what it
 * acknowledged stays, once and in order.
 */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { EventEmitter, once } from 'node:events';
import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  startEventStoreDbClusterProcess,
  type EventStoreDbClusterProcess,
} from '../support/servers/eventstoredb/eventStoreDbClusterProcess.ts';
import { gossipOf } from '../support/servers/eventstoredb/eventStoreDbGossip.ts';
import {
  openRawNode,
  type RawNode,
  type RawRecord,
} from '../support/servers/eventstoredb/rawEventStoreDb.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';
import { size } from '../support/jest/size.ts';

const WRITERS = 16;
const ROUNDS = size({ small: 1, full: 2 });

let folder: string;
let cluster: EventStoreDbClusterProcess;
let nodes: RawNode[];
/** Ends what a test that failed has left running. */
let over: AbortController;
beforeEach(async () => {
  over = new AbortController();
  folder = await temporaryFolder();
  cluster = await startEventStoreDbClusterProcess({ folder });
  nodes = cluster.ports.map(openRawNode);
});
afterEach(async () => {
  over.abort();
  for (const node of nodes) node.close();
  await cluster.close();
  await rm(folder, { recursive: true });
});

const node = (index: number): RawNode => nodes[index] as RawNode;
const anyNode = (): number => Math.trunc(Math.random() * nodes.length);
const followersOf = (leader: number): number[] => [0, 1, 2].filter((index) => index !== leader);

async function eventually(check: () => Promise<void>, timeoutMs = 15_000): Promise<void> {
  for (const deadline = Date.now() + timeoutMs; ; await sleep(100)) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
  }
}

/** What all three nodes show, once they show the same. */
async function settled(): Promise<RawRecord[]> {
  let records: RawRecord[] = [];
  await eventually(async () => {
    const [first, ...others] = await Promise.all(nodes.map((each) => each.readAll(false)));
    for (const other of others) expect(other).toEqual(first);
    records = first ?? [];
  });
  return records;
}

/**
 * Writers that append one event after the other, each with its own id until it is acknowledged, at
 * whoever may lead.
 */
function startWriters() {
  const load = new EventEmitter();
  const state = { stopping: false, acknowledged: 0, leader: 0 };

  async function write(): Promise<{ stream: string; ids: string[] }> {
    const stream = `s-${crypto.randomUUID()}`;
    const ids: string[] = [];
    while (!state.stopping && !over.signal.aborted) {
      const id = crypto.randomUUID();
      for (
        let at = state.leader;
        !over.signal.aborted;
        at = (await cluster.leader()) ?? anyNode()
      ) {
        const answer = await node(at).append(
          { stream, expected: ids.length - 1, id },
          { deadlineMs: 2500 },
        );
        if (answer.kind !== 'success') continue;
        expect(answer.revision).toBe(ids.length);
        state.leader = at;
        break;
      }
      ids.push(id);
      state.acknowledged += 1;
      load.emit('acknowledged');
    }
    return { stream, ids };
  }

  const writing = Array.from({ length: WRITERS }, write);
  return {
    async progress(count: number): Promise<void> {
      const signal = AbortSignal.any([over.signal, AbortSignal.timeout(30_000)]);
      const goal = state.acknowledged + count;
      while (state.acknowledged < goal) await once(load, 'acknowledged', { signal });
    },
    stop: () => {
      state.stopping = true;
      return Promise.all(writing);
    },
  };
}

/** Follows the leader from event to event, and goes on elsewhere where a subscription breaks. */
function startSubscriber() {
  const seen: RawRecord[] = [];
  const state = { stopping: false, cancel: () => {} };
  const following = (async () => {
    while (!state.stopping && !over.signal.aborted) {
      const leader = await cluster.leader();
      if (leader === undefined) continue;
      const { ended, cancel } = node(leader).subscribe(seen.at(-1)?.position, (record) =>
        seen.push(record),
      );
      state.cancel = cancel;
      over.signal.addEventListener('abort', cancel, { once: true });
      await ended;
    }
  })();
  return {
    seen,
    async stop(): Promise<void> {
      state.stopping = true;
      state.cancel();
      await following;
    },
  };
}

const FAULTS: Record<string, (leader: number) => Promise<void>> = {
  async 'the leader is killed'(leader) {
    await cluster.kill(leader);
    await cluster.untilLeader();
    await cluster.start(leader);
  },
  async 'the leader is frozen'(leader) {
    cluster.freeze(leader);
    await cluster.untilLeader();
    await sleep(Math.random() * 1000);
    cluster.thaw(leader);
  },
  async 'the leader resigns'() {
    await cluster.resign();
  },
  async 'the leader is cut off from its followers'(leader) {
    cluster.isolate(leader);
    await sleep(1000 + Math.random() * 3000);
    cluster.rejoin(leader);
  },
  async 'a follower is killed'(leader) {
    const [follower = 0] = followersOf(leader);
    await cluster.kill(follower);
    await sleep(500);
    await cluster.start(follower);
  },
  async 'both followers are killed'(leader) {
    await Promise.all(followersOf(leader).map((follower) => cluster.kill(follower)));
    await sleep(Math.random() * 4000);
    await Promise.all(followersOf(leader).map((follower) => cluster.start(follower)));
  },
  async 'all nodes are killed'() {
    await Promise.all([0, 1, 2].map((index) => cluster.kill(index)));
    await Promise.all([0, 1, 2].map((index) => cluster.start(index)));
  },
  async 'a follower is frozen, and the leader killed meanwhile'(leader) {
    const [frozen = 0] = followersOf(leader);
    cluster.freeze(frozen);
    await sleep(500);
    await cluster.kill(leader);
    cluster.thaw(frozen);
    await cluster.untilLeader();
    await cluster.start(leader);
  },
};

test('keeps every acknowledged append once and in order on all nodes, whatever happens under load', async () => {
  const writers = startWriters();
  const subscriber = startSubscriber();
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const fault of Object.values(FAULTS)) {
      await writers.progress(100 + Math.ceil(Math.random() * 200));
      await fault(await cluster.untilLeader());
    }
  }
  await writers.progress(100);
  const written = await writers.stop();

  const records = await settled();
  for (const { stream, ids } of written) {
    const there = records.filter((record) => record.stream === stream);
    expect(there.map(({ id }) => id)).toEqual(ids);
    expect(there.map(({ revision }) => revision)).toEqual(ids.map((_, revision) => revision));
  }
  await eventually(async () => expect(subscriber.seen).toEqual(records));
  await subscriber.stop();
}, 180_000);

test('does not let a node lead that missed what the others have, though it is there first', async () => {
  const leader = await cluster.untilLeader();
  const [late = 0, other = 0] = followersOf(leader);
  await cluster.kill(late);
  const ids = Array.from({ length: 5 }, () => crypto.randomUUID());
  for (const [index, id] of ids.entries()) {
    expect(await node(leader).append({ stream: 's-1', expected: index - 1, id })).toMatchObject({
      kind: 'success',
    });
  }
  await Promise.all([leader, other].map((index) => cluster.kill(index)));
  await cluster.start(late);
  await sleep(1000);
  await cluster.start(other);
  expect(await cluster.untilLeader()).toBe(other);
  await cluster.start(leader);
  expect((await settled()).filter(({ stream }) => stream === 's-1').map(({ id }) => id)).toEqual(
    ids,
  );
});

test('keeps a subscription open when the leader resigns, and serves it as a follower', async () => {
  const leader = await cluster.untilLeader();
  const seen: string[] = [];
  const ends: string[] = [];
  const subscription = node(leader).subscribe(undefined, ({ id }) => seen.push(id));
  void subscription.ended.then((reason) => ends.push(reason));
  await cluster.resign();
  await eventually(async () => expect([undefined, leader]).not.toContain(await cluster.leader()));
  const id = crypto.randomUUID();
  const next = await cluster.untilLeader();
  await node(next).append({ stream: 's-1', expected: -1, id });
  await eventually(async () => expect(seen).toContain(id));
  expect(ends).toEqual([]);
  subscription.cancel();
});

test('passes an append that a follower takes on to the leader', async () => {
  const leader = await cluster.untilLeader();
  const [follower = 0] = followersOf(leader);
  const request = { stream: 's-1', expected: -1, id: crypto.randomUUID() };
  expect(await node(follower).append(request)).toEqual({
    kind: 'unknown',
    reason: '5 Leader info available',
  });
  expect(await node(follower).append(request, { requiresLeader: false })).toEqual({
    kind: 'success',
    revision: 0,
  });
  expect((await settled()).at(-1)?.id).toBe(request.id);
});

describe('what was not committed', () => {
  test('is never acknowledged by a leader that was frozen and does not know yet that another one leads', async () => {
    const leader = await cluster.untilLeader();
    await node(leader).append({ stream: 's-1', expected: -1, id: crypto.randomUUID() });
    cluster.freeze(leader);
    const lost = Array.from({ length: 50 }, () => crypto.randomUUID());
    const append = (id: string) =>
      node(leader).append({ stream: `s-${id}`, expected: -1, id }, { deadlineMs: 8000 });
    const appends = lost.map(append);
    const next = await cluster.untilLeader();
    const kept = crypto.randomUUID();
    expect(await node(next).append({ stream: 's-1', expected: 0, id: kept })).toEqual({
      kind: 'success',
      revision: 1,
    });
    cluster.thaw(leader);
    expect(new Set((await Promise.all(appends)).map(({ kind }) => kind))).toEqual(
      new Set(['unknown']),
    );
    const ids = (await settled()).map(({ id }) => id);
    expect(ids).toContain(kept);
    expect(lost.filter((id) => ids.includes(id))).toEqual([]);
  });

  test('is gone when the leader that was cut off with it is back, and another record is in its place', async () => {
    const leader = await cluster.untilLeader();
    await node(leader).append({ stream: 's-1', expected: -1, id: crypto.randomUUID() });
    const lost = crypto.randomUUID();
    const kept = crypto.randomUUID();
    cluster.isolate(leader);
    await sleep(100);
    const unanswered = node(leader).append(
      { stream: 's-1', expected: 0, id: lost },
      { deadlineMs: 8000 },
    );
    await eventually(async () =>
      expect([undefined, leader]).not.toContain(await successor(leader)),
    );
    const next = (await successor(leader)) as number;
    expect(await node(next).append({ stream: 's-1', expected: 0, id: kept })).toEqual({
      kind: 'success',
      revision: 1,
    });
    cluster.rejoin(leader);
    const records = await settled();
    expect(records.filter(({ stream }) => stream === 's-1').map(({ id }) => id)).not.toContain(
      lost,
    );
    expect(records.at(-1)?.id).toBe(kept);
    expect(await unanswered).toMatchObject({
      kind: 'unknown',
      reason: expect.stringMatching(/^4 /),
    });
  });

  /** Who leads according to the other nodes. */
  async function successor(former: number): Promise<number | undefined> {
    const [other = 0] = followersOf(former);
    const members = (await gossipOf(cluster.ports[other] ?? 0)) ?? [];
    const index = members.findIndex(({ state, alive }) => state === 'leader' && alive);
    return index === -1 ? undefined : index;
  }
});
