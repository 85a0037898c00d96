import { beforeEach, describe, expect, jest, test } from '@jest/globals';
import {
  createTurnWatch,
  type TurnWatch,
  type TurnEndKind,
  type TurnListener,
  type TurnSignals,
} from '../../../../../shared/runs/queueing/turnWatch.ts';
import type { StoredEvent } from '../../../../../shared/ports/eventStore.ts';

const SESSION = 'session_1';

let now: number;
let log: Pick<StoredEvent, 'type' | 'data'>[];
let reads: number;
let away: boolean;
let connected: boolean;
let told: string[];
/** Calls, when the requested process answers. */
let onRequest: () => Promise<void>;
let others: TurnListener;

const signals: TurnSignals = {
  send: (sessionId) => void told.push(sessionId),
  async requestStop(owner, { session_id, turn }) {
    told.push(`${owner} stops ${session_id} ${turn}`);
    await onRequest();
  },
  listen: (listener) => void (others = listener),
  connected: () => connected,
};

const store = {
  async readStream(stream: string, { from = 0, limit }: { from?: number; limit: number }) {
    reads += 1;
    if (away) throw new Error('away');
    return log
      .map((event, revision) => ({ ...event, stream, revision }) as StoredEvent)
      .slice(from, from + limit);
  },
};

beforeEach(() => {
  [now, reads, away, connected, told] = [0, 0, false, true, []];
  onRequest = async () => undefined;
  log = [event('started', {}), event('turn_started', { turn: 1 })];
});

const event = (type: string, data: object) => ({
  type: `session.${type}.v1`,
  data: JSON.stringify(data),
});
const open = (shared = true): TurnWatch =>
  createTurnWatch({ store, signals: shared ? signals : undefined, shared, now: () => now });

/** Watches turn 1, which began at revision 1. */
function watched(watch: TurnWatch, by: 'run' | 'client', turn = 1) {
  const ends: TurnEndKind[] = [];
  const onEnd = (end: TurnEndKind): void => void ends.push(end);
  const giveUp = watch.subscribe({ session_id: SESSION, turn, revision: 1, by, onEnd });
  return { ends, giveUp };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));
async function after(watch: TurnWatch, ms: number): Promise<void> {
  now += ms;
  watch.pollDue();
  await watch.whenIdle();
}

describe('a watched turn', () => {
  test.each([
    ['turn_interrupted', { turn: 1, reason: 'cancelled' }, 'cancelled'],
    ['turn_interrupted', { turn: 1, reason: 'crash' }, 'crash'],
    ['turn_interrupted', { turn: 1, reason: 'crash', cause: 'shutdown' }, 'shutdown'],
    ['turn_interrupted', { turn: 1, reason: 'of a newer release' }, 'ended'],
    ['turn_completed', { turn: 1 }, 'ended'],
    ['turn_failed', { turn: 1 }, 'ended'],
    ['turn_started', { turn: 2 }, 'ended'],
    ['erased', {}, 'erased'],
  ])('has ended after %s %j', async (type, data, end) => {
    const watch = open();
    const { ends } = watched(watch, 'run');
    log.push(event('tool_called', { turn: 1 }), event(type, data));
    others.onTurnEnded(SESSION);
    await settled();
    expect(ends).toEqual([end]);
  });

  test.each([
    ['tool_called', '{"turn":1}'],
    ['turn_started', '{"turn":1}'],
    ['turn_interrupted', 'no JSON'],
    ['turn_completed', '{"turn":"1"}'],
    ['turn_completed', '{"turn":0}'],
    ['described', '{}'],
  ])('goes on after %s %s', async (type, data) => {
    const watch = open();
    const { ends } = watched(watch, 'run');
    log.push({ type: `session.${type}.v1`, data });
    others.onTurnEnded(SESSION);
    await settled();
    expect(ends).toEqual([]);
  });

  test('goes on though somebody tells that it has ended: only the log is believed', async () => {
    const watch = open();
    const { ends } = watched(watch, 'run');
    for (const name of [SESSION, SESSION, 'another', '']) others.onTurnEnded(name);
    await settled();
    expect([ends, reads]).toEqual([[], 2]);
  });

  test('is told of once, and no more when it was given up', async () => {
    const watch = open();
    const [one, other] = [watched(watch, 'run'), watched(watch, 'client')];
    other.giveUp();
    watch.notifyEnded({ session_id: SESSION, turn: 1 }, 'cancelled');
    watch.notifyEnded({ session_id: SESSION, turn: 1 }, 'ended');
    expect([one.ends, other.ends]).toEqual([['cancelled'], []]);
    reads = 0;
    await after(watch, 60_000);
    expect(reads).toBe(0);
  });

  test('is told of by the end of a later one, and not by that of an earlier one', () => {
    const watch = open();
    const [first, second] = [watched(watch, 'client'), watched(watch, 'client', 2)];
    watch.notifyEnded({ session_id: SESSION, turn: 1 }, 'ended');
    expect([first.ends, second.ends]).toEqual([['ended'], []]);
  });

  test('is found to have ended where nothing was told: soon where a client waits', async () => {
    const watch = open();
    const { ends } = watched(watch, 'client');
    await settled();
    log.push(event('turn_interrupted', { turn: 1, reason: 'cancelled' }));
    await after(watch, 500);
    expect(ends).toEqual(['cancelled']);
  });

  test.each([
    [true, 3_000],
    [false, 600],
  ])('by its run, while signals come through (%s), is looked at each %i ms', async (up, ms) => {
    connected = up;
    const watch = open();
    const { ends } = watched(watch, 'run');
    log.push(event('turn_interrupted', { turn: 1, reason: 'cancelled' }));
    await after(watch, ms - 1);
    expect([reads, ends]).toEqual([0, []]);
    await after(watch, 1);
    expect([reads, ends]).toEqual([1, ['cancelled']]);
  });

  test('is looked at soon after signals may have been lost', async () => {
    const watch = open();
    const { ends } = watched(watch, 'run');
    log.push(event('turn_completed', { turn: 1 }));
    others.onSignalsLost();
    await after(watch, 1);
    expect(ends).toEqual(['ended']);
  });

  test('of a log that nobody else writes to costs its run no look at all', async () => {
    const watch = open(false);
    watched(watch, 'run');
    await after(watch, 3_600_000);
    expect(reads).toBe(0);
  });

  test('is looked at again when the store is back', async () => {
    const watch = open();
    const { ends } = watched(watch, 'client');
    away = true;
    log.push(event('turn_completed', { turn: 1 }));
    await after(watch, 500);
    expect(ends).toEqual([]);
    away = false;
    await after(watch, 500);
    expect(ends).toEqual(['ended']);
  });

  test('that records hundreds of events is read to its end', async () => {
    const watch = open();
    const { ends } = watched(watch, 'run');
    for (let call = 0; call < 300; call += 1) log.push(event('tool_called', { turn: 1 }));
    log.push(event('turn_completed', { turn: 1 }));
    others.onTurnEnded(SESSION);
    while (ends.length === 0) await settled();
    expect(ends).toEqual(['ended']);
  });

  test('is made known to other processes on demand', () => {
    const watch = open();
    watch.notifyOthers(SESSION);
    open(false).notifyOthers(SESSION);
    expect(told).toEqual([SESSION]);
  });
});

describe('before the end of a turn is recorded', () => {
  const findOwner = async () => undefined;

  /** Watches the run of turn 1, which is stopped when `stopped` resolves. */
  function runWith(watch: TurnWatch, stopped: Promise<void>) {
    const steps: unknown[] = [];
    watch.subscribe({
      session_id: SESSION,
      turn: 1,
      revision: 1,
      by: 'run',
      onEnd: () => undefined,
      async onStop(ending) {
        steps.push('stops');
        void ending.then((end) => steps.push(end.appended));
        await stopped;
        steps.push('stopped');
      },
    });
    const recordEnd = async () => {
      steps.push('records the end');
      return { appended: 'the end' };
    };
    return { steps, recordEnd };
  }

  test('its run is stopped, and then hears of it', async () => {
    const watch = open();
    const { steps, recordEnd } = runWith(
      watch,
      settled().then(() => undefined),
    );
    const target = { session_id: SESSION, turn: 1 };
    expect(await watch.endTurn(target, { findOwner, recordEnd })).toEqual({ appended: 'the end' });
    expect(steps).toEqual(['stops', 'stopped', 'records the end', 'the end']);
  });

  test('no other run is stopped, and none of another process is waited for', async () => {
    const watch = open();
    const { steps, recordEnd } = runWith(watch, Promise.resolve());
    await watch.endTurn({ session_id: SESSION, turn: 2 }, { findOwner, recordEnd });
    await watch.endTurn({ session_id: 'session_2', turn: 1 }, { findOwner, recordEnd });
    await watch.endTurn({ session_id: SESSION }, { findOwner, recordEnd });
    expect(steps).toEqual(['records the end', 'records the end', 'records the end']);
  });

  test('its run is not waited for longer than some seconds', async () => {
    const watch = open();
    const { steps, recordEnd } = runWith(watch, new Promise(() => undefined));
    await watch.endTurn({ session_id: SESSION, turn: 1 }, { findOwner, recordEnd });
    expect(steps).toEqual(['stops', 'records the end', 'the end']);
  });

  test('and can’t be, its run hears of the error', async () => {
    const watch = open();
    let ending: Promise<unknown> | undefined;
    const onStop = async (passed: Promise<unknown>): Promise<void> => void (ending = passed);
    const run = { session_id: SESSION, turn: 1, revision: 1, by: 'run' } as const;
    watch.subscribe({ ...run, onEnd: () => undefined, onStop });
    const error = new Error('away');
    const recordEnd = (): Promise<never> => Promise.reject(error);
    await expect(watch.endTurn(run, { findOwner, recordEnd })).rejects.toBe(error);
    await expect(ending).rejects.toBe(error);
  });

  describe('by another process', () => {
    const target = { session_id: SESSION, turn: 1 };

    test('its owner is requested to stop the run, and waited for', async () => {
      const steps: string[] = [];
      onRequest = async () => {
        await settled();
        steps.push('answered');
      };
      const recordEnd = async () => {
        steps.push('records the end');
        return { appended: 'the end' };
      };
      await open().endTurn(target, { findOwner: async () => 'owner', recordEnd });
      expect(told).toEqual([`owner stops ${SESSION} 1`]);
      expect(steps).toEqual(['answered', 'records the end']);
    });

    test.each([
      ['no other process has the turn', () => open(), target],
      ['no turn is known', () => open(), { session_id: SESSION }],
      ['no other process is reached', () => open(), target],
      ['no other process can write', () => open(false), target],
    ])('nothing is requested where %s', async (why, opened, ref) => {
      connected = why !== 'no other process is reached';
      const owner = why === 'no other process has the turn' ? undefined : 'owner';
      const recordEnd = async () => ({ appended: 'the end' });
      const ended = await opened().endTurn(ref, { findOwner: async () => owner, recordEnd });
      expect([ended, told]).toEqual([{ appended: 'the end' }, []]);
    });

    test('its run is stopped on request, and gets the end from the log', async () => {
      const watch = open();
      const { steps } = runWith(watch, Promise.resolve());
      await others.onStopRequested({ session_id: SESSION, turn: 2 });
      expect(steps).toEqual([]);
      await others.onStopRequested(target);
      expect(steps).toEqual(['stops', 'stopped']);
      log.push(event('turn_interrupted', { turn: 1, reason: 'cancelled' }));
      others.onTurnEnded(SESSION);
      await settled();
      expect(steps).toEqual(['stops', 'stopped', true]);
    });

    test('its run goes on without an end that is not recorded in time', async () => {
      jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick'] });
      try {
        const watch = open();
        const { steps } = runWith(watch, Promise.resolve());
        await others.onStopRequested(target);
        await jest.advanceTimersByTimeAsync(60_000);
        expect(steps).toEqual(['stops', 'stopped', undefined]);
      } finally {
        jest.useRealTimers();
      }
    });
  });
});
