import { beforeEach, expect, jest, test } from '@jest/globals';
import {
  createTurnSignals,
  type TurnSignals,
} from '../../../../../shared/runs/queueing/turnWatch.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import { ALL_MEMBERS, type Broadcast } from '../../../../../shared/ports/broadcast.ts';

let connected: boolean;
/** How many more messages are taken. */
let room: number;
let sent: string[];
let hear: (message: string) => void;
let reconnect: () => void;
let signals: TurnSignals;
let heard: string[];
/** Resolves when the run that is to be stopped has stopped. */
let stopped: Promise<void>;

const broadcast: Broadcast = {
  name: 'one',
  send(to, message) {
    if (!connected || room === 0) return false;
    room -= 1;
    sent.push(`${to}: ${message}`);
    return true;
  },
  listen(hearing, missed) {
    [hear, reconnect] = [hearing, missed!];
    return () => undefined;
  },
  connected: () => connected,
  close: async () => undefined,
};

beforeEach(() => {
  [connected, room, sent, heard] = [true, Infinity, [], []];
  signals = createTurnSignals(broadcast);
  signals.listen({
    onTurnEnded: (sessionId) => heard.push(sessionId),
    onSignalsLost: () => heard.push('missed'),
    async onStopRequested({ session_id, turn }) {
      heard.push(`stop ${session_id} ${turn}`);
      await stopped;
    },
  });
});

test('what is told is sent to all at once, and heard as it was told', () => {
  signals.send('session_1');
  expect(sent).toEqual([`${ALL_MEMBERS}: turn session_1`]);
  hear('turn session_2');
  hear('{"is":"follow"}');
  expect(heard).toEqual(['session_2']);
});

test('what is told without a connection waits for it, each session once, and no more than a bound', () => {
  connected = false;
  for (let count = 0; count < LIMITS.turn.signals + 5; count += 1) signals.send(`s${count}`);
  signals.send('s0');
  expect([signals.connected(), sent]).toEqual([false, []]);
  connected = true;
  reconnect();
  expect(heard).toEqual(['missed']);
  expect(sent).toEqual(
    Array.from({ length: LIMITS.turn.signals }, (_, count) => `${ALL_MEMBERS}: turn s${count}`),
  );
});

test('what finds too many messages on their way is sent when there is room', () => {
  jest.useFakeTimers();
  try {
    room = 1;
    for (const session of ['s1', 's2', 's3']) signals.send(session);
    expect(sent).toHaveLength(1);
    jest.advanceTimersByTime(500);
    room = Infinity;
    jest.advanceTimersByTime(500);
    expect(sent).toEqual(['s1', 's2', 's3'].map((session) => `${ALL_MEMBERS}: turn ${session}`));
    expect(jest.getTimerCount()).toBe(0);
  } finally {
    jest.useRealTimers();
  }
});

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('a run is stopped at the request of another process, which then has the answer', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  stopped = promise;
  hear('stop two session_1 3');
  await settled();
  expect([heard, sent]).toEqual([['stop session_1 3'], []]);
  resolve();
  await settled();
  expect(sent).toEqual(['two: stopped session_1 3']);
});

test('a request waits for the answer about its turn', async () => {
  const answered: string[] = [];
  for (const turn of [3, 3, 4])
    void signals
      .requestStop('two', { session_id: 'session_1', turn })
      .then(() => answered.push(`turn ${turn}`));
  expect(sent.slice(1)).toEqual(['two: stop one session_1 3', 'two: stop one session_1 4']);
  hear('stopped session_2 3');
  hear('stopped session_1 3');
  await settled();
  expect(answered).toEqual(['turn 3', 'turn 3']);
});

test('a request waits a second for an answer that does not come, and not at all if it can’t be sent', async () => {
  const began = performance.now();
  await signals.requestStop('two', { session_id: 'session_1', turn: 3 });
  expect(performance.now() - began).toBeGreaterThan(900);
  connected = false;
  const beganAgain = performance.now();
  await signals.requestStop('two', { session_id: 'session_1', turn: 3 });
  expect(performance.now() - beganAgain).toBeLessThan(500);
});
