import { setImmediate } from 'node:timers/promises';
import { beforeEach, expect, test } from '@jest/globals';
import {
  ReplayCancelled,
  ReplayHandedOver,
  type ReplayRunContext,
} from '../../../../../services/followers/replays/replayContext.ts';
import {
  ProcessesDied,
  replayTurnUntilEnded,
} from '../../../../../services/followers/replays/replayTurn.ts';
import { createFairSemaphore } from '../../../../../shared/lib/concurrency/fairSemaphore.ts';
import {
  storeUnavailableError,
  TurnlogError,
} from '../../../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import type { AttemptedTurn } from '../../../../../shared/replays/replayAttempts.ts';

const { tries, turns: permits } = LIMITS.replays;
const logger = { debug: () => undefined, warn: () => undefined };
const ended = new TurnlogError('invalid_request', 'It ends here.');

/** Sessions with an attempt of this process. */
let open: Set<string>;
let replaying: ReplayRunContext;
/** How many processes died in a session's turn. */
let deaths: Map<string, number>;

beforeEach(() => {
  [open, deaths] = [new Set(), new Map()];
  const all = { permits, bytes: Infinity };
  replaying = {
    context: { logger, memory: { hasWaiters: () => false } },
    semaphore: createFairSemaphore('test', all, { ...all, permits: permits - 1 }),
    crashedTurns: createFairSemaphore('test_crashed', { ...all, permits: 1 }),
    throttle: { begin: async () => () => undefined },
    attempts: {
      countDeaths: async ({ session_id }: AttemptedTurn) => deaths.get(session_id) ?? 0,
      begin: async ({ session_id }: AttemptedTurn) => void open.add(session_id),
      end: async ({ session_id }: AttemptedTurn) => void open.delete(session_id),
    },
  } as unknown as ReplayRunContext;
});

interface Attempt {
  account_id?: string;
  /** Processes that died in earlier attempts. */
  died?: number;
  signal?: AbortSignal;
}

/** Begins the turn of a session; `run` stands for each attempt, and ends the turn by its error. */
function replayTurn(
  session_id: string,
  run: () => Promise<void>,
  { account_id = 'acct_1', died = 0, signal = AbortSignal.timeout(4_000) }: Attempt = {},
): Promise<unknown> {
  deaths.set(session_id, died);
  const toRun = {
    actor: { account_id, request_id: 'replay_1' },
    session_id,
    turns: { lastTry: async () => undefined },
    recorded: 1,
    budget: { isSpent: () => false },
  };
  const next = async () => {
    await run();
    throw ended;
  };
  const turn = toRun as unknown as Parameters<typeof replayTurnUntilEnded>[1];
  return replayTurnUntilEnded(replaying, turn, next, signal);
}

/** Waits until everything that can go on has gone on. */
async function settle(): Promise<void> {
  for (let step = 0; step < 5; step += 1) await setImmediate();
}

/** Records which attempts have begun, each of which ends when it is released. */
function attemptsInOrder() {
  const begun: string[] = [];
  const releases = new Map<string, () => void>();
  return {
    begun,
    async release(name: string) {
      releases.get(name)!();
      await settle();
    },
    run: (name: string) => async () => {
      begun.push(name);
      const { promise, resolve } = Promise.withResolvers<void>();
      releases.set(name, resolve);
      await promise;
    },
  };
}

test('a turn is not run again once as many processes have died in it as a turn has attempts', async () => {
  let runs = 0;
  const run = async () => void (runs += 1);
  await expect(replayTurn('one', run, { died: tries - 1 })).rejects.toBe(ended);
  expect(runs).toBe(1);
  await expect(replayTurn('two', run, { died: tries })).rejects.toThrow(ProcessesDied);
  expect(runs).toBe(1);
});

test('an attempt is recorded before anything is loaded for it, and until it has ended', async () => {
  let attempted: string[] = [];
  const run = async () => void (attempted = [...open]);
  await expect(replayTurn('one', run)).rejects.toBe(ended);
  expect(attempted).toEqual(['one']);
  expect([...open]).toEqual([]);
});

test('an attempt that ends because the store is unavailable is no death', async () => {
  let attempts = 0;
  const run = async () => {
    attempts += 1;
    throw attempts === 1 ? storeUnavailableError('Not now.') : ended;
  };
  const replayed = replayTurn('one', run);
  await settle();
  expect(attempts).toBe(1);
  expect([...open]).toEqual([]);
  await expect(replayed).rejects.toBe(ended);
  expect(attempts).toBe(2);
});

test('nor is one of a process that is stopped, however long its end takes', async () => {
  const stop = new AbortController();
  const { begun, run } = attemptsInOrder();
  void replayTurn('one', run('one'), { signal: stop.signal });
  while (begun.length === 0) await setImmediate();
  expect([...open]).toEqual(['one']);
  stop.abort(new ReplayHandedOver());
  await setImmediate();
  expect([...open]).toEqual([]);
});

test('turns in which a process died are run one after another, by turns of accounts, beside the others', async () => {
  const { begun, run, release } = attemptsInOrder();
  const replayed = [
    ...['a1', 'a2', 'a3'].map((name) => replayTurn(name, run(name), { died: 1 })),
    replayTurn('b1', run('b1'), { died: 1, account_id: 'acct_2' }),
    replayTurn('other', run('other')),
  ].map((turn) => turn.catch(() => undefined));
  await settle();
  expect(begun).toEqual(['a1', 'other']);
  await release('a1');
  expect(begun).toEqual(['a1', 'other', 'a2']);
  await release('a2');
  await release('b1');
  await release('a3');
  await release('other');
  await Promise.all(replayed);
  expect(begun).toEqual(['a1', 'other', 'a2', 'b1', 'a3']);
});

test('a replay that is cancelled ends at once while its turn waits for those in which a process died', async () => {
  const { begun, run, release } = attemptsInOrder();
  const first = replayTurn('a1', run('a1'), { died: 1 }).catch(() => undefined);
  while (begun.length === 0) await setImmediate();
  const cancel = new AbortController();
  const waiting = replayTurn('a2', run('a2'), { died: 1, signal: cancel.signal });
  await setImmediate();
  cancel.abort(new ReplayCancelled());
  await expect(waiting).rejects.toThrow(ReplayCancelled);
  expect(begun).toEqual(['a1']);
  await release('a1');
  await first;
});

test('an account whose turns take all its permits keeps no turn of others in which a process died waiting', async () => {
  const { begun, run, release } = attemptsInOrder();
  const quick = Array.from({ length: permits - 1 }, (_, name) => `quick${name}`);
  const replayed = [
    ...quick.map((name) => replayTurn(name, run(name))),
    replayTurn('a1', run('a1'), { died: 1 }),
    replayTurn('b1', run('b1'), { died: 1, account_id: 'acct_2' }),
  ].map((turn) => turn.catch(() => undefined));
  await settle();
  expect(begun).toEqual([...quick, 'b1']);
  await release('quick0');
  expect(begun).toEqual([...quick, 'b1']);
  await release('b1');
  expect(begun).toEqual([...quick, 'b1', 'a1']);
  for (const name of [...quick.slice(1), 'a1']) await release(name);
  await Promise.all(replayed);
});
