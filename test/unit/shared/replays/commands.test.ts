import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { beforeEach, expect, jest, test } from '@jest/globals';
import {
  resolveReplayInput,
  startReplay,
  type ReplayContext,
  type ReplayInput,
} from '../../../../shared/replays/commands.ts';
import { createPermitPool } from '../../../../shared/lib/concurrency/capacity.ts';
import { createDamagedStreams } from '../../../../shared/eventlog/reading/damagedStreams.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import { eventStoreFixture } from '../../../support/stores/sqlite/sqliteEventStore.ts';

const { running: most, runningOfAll, startsOfAccount } = LIMITS.replays;
const input: ReplayInput = {
  sessions: [{ session_id: 'session_1', revision: 2, turns: 1 }],
  tools: 'recorded',
  missing_tools: 'stop',
  concurrency: 1,
  budget_tokens: 1,
};

const findInput = jest.fn(async () => input);
beforeEach(() => void findInput.mockClear());

function contextBeside({ own, all }: { own: number; all: number }): ReplayContext {
  const readModels = {
    listRunningReplays: async (limit: number, account?: string) =>
      Array<string>(Math.min(limit, account === undefined ? all : own)).fill('replay_1'),
  };
  const ofAccount = { permits: startsOfAccount, bytes: Infinity };
  const replayStarts = createPermitPool('test', { permits: 100, bytes: Infinity }, ofAccount);
  return { readModels, replayStarts, catalogue: {} } as unknown as ReplayContext;
}

const ACCOUNT = { account_id: 'acct_1' };

/** Asks for one more where so many run of the account, and of all. */
const startBeside = (running: { own: number; all: number }): Promise<ReplayInput> =>
  resolveReplayInput(contextBeside(running), ACCOUNT, findInput);

test('beyond so many replays of an account, or of all, none is started, and it is said which', async () => {
  expect(await startBeside({ own: most - 1, all: runningOfAll - 1 })).toEqual(input);
  await expect(startBeside({ own: most, all: most })).rejects.toMatchObject({
    code: 'replay_limit_reached',
    message: expect.stringContaining(`The account has ${most} replays`),
  });
  await expect(startBeside({ own: 0, all: runningOfAll })).rejects.toMatchObject({
    code: 'overloaded',
    message: expect.stringContaining(`The service runs ${runningOfAll} replays`),
    retryAfterSeconds: 60,
  });
  // The sessions of those that were refused have not been read.
  expect(findInput).toHaveBeenCalledTimes(1);
});

/** Requests of an account, all at once, the first of which finds its sessions when told to. */
function startMany(count: number) {
  const { promise, resolve: find } = Promise.withResolvers<void>();
  findInput.mockImplementationOnce(async () => {
    await promise;
    return input;
  });
  const left: ((reason: Error) => void)[] = [];
  const context = {
    ...contextBeside({ own: 0, all: 0 }),
    onClientDisconnect: (leave: (reason: Error) => void) => {
      left.push(leave);
      return () => {};
    },
  };
  const starts = Array.from({ length: count }, () =>
    resolveReplayInput(context, ACCOUNT, findInput),
  );
  return { ends: Promise.allSettled(starts), find, left };
}

test('one request of an account at a time finds its sessions, and only so many wait', async () => {
  const { ends, find } = startMany(startsOfAccount + 1);
  await setImmediate();
  expect(findInput).toHaveBeenCalledTimes(1);
  find();
  const settled = await ends;
  expect(settled.pop()).toMatchObject({ reason: { code: 'rate_limited' } });
  expect(settled).toEqual(settled.map(() => ({ status: 'fulfilled', value: input })));
  expect(findInput).toHaveBeenCalledTimes(startsOfAccount);
});

test('the request of a client that has left finds no sessions', async () => {
  const { ends, find, left } = startMany(2);
  await setImmediate();
  left[1]!(new Error('left'));
  find();
  expect(await ends).toMatchObject([{ status: 'fulfilled' }, { reason: { message: 'left' } }]);
  expect(findInput).toHaveBeenCalledTimes(1);
});

test('concurrent attempts of a request find its sessions once, and start one replay', async () => {
  const fixture = await eventStoreFixture();
  const onIdempotentReplay = jest.fn();
  const { readModels, ...others } = contextBeside({ own: 0, all: 0 });
  const context = {
    ...others,
    readModels: { ...readModels, untilShown: async () => true },
    store: fixture.store(),
    damaged: createDamagedStreams(() => undefined),
    clock: { now: () => Date.UTC(2026, 10, 22) },
    ids: { uuid: randomUUID, typeId: () => 'replay_2' },
    onIdempotentReplay,
  };
  const actor = { ...ACCOUNT, key_id: 'key_1', request_id: 'request_1' };
  try {
    const attempts = [true, false, false].map((isFirstAttempt) => ({
      request_id: 'ab'.repeat(32),
      reserved: { id: 'replay_1' },
      isFirstAttempt,
    }));
    const started = await Promise.all(
      attempts.map((claim) => startReplay(context, actor, findInput, claim)),
    );
    expect(new Set(started.map((each) => JSON.stringify(each))).size).toBe(1);
    expect(started[0]).toMatchObject({ replay_id: 'replay_1' });
    expect([findInput, onIdempotentReplay].map(({ mock }) => mock.calls.length)).toEqual([1, 2]);
  } finally {
    await fixture.dispose();
  }
});
