import { expect, test } from '@jest/globals';
import { createMemoryBroadcast } from '../../../../../infra/broadcast/memory.ts';
import { createLiveTurns } from '../../../../../shared/runs/live/liveTurns.ts';
import { createMirroredTurns } from '../../../../../shared/runs/live/mirrorTurns.ts';
import { START_OF_OUTPUT } from '../../../../../shared/sessions/turns/turnOutputPosition.ts';
import { followTurn } from '../../../../../shared/runs/live/followTurn.ts';

const subject = { account_id: 'a', session_id: 's', turn: 1 };

/** Somebody who follows a turn that another process runs, and what that one was asked. */
function follower() {
  const { join } = createMemoryBroadcast();
  const asked: string[] = [];
  join('owner').listen((message) => asked.push(message));
  const elsewhere = createMirroredTurns({
    broadcast: join('here'),
    keys: { find: () => new Map() },
  });
  const [stopping, left] = [new AbortController(), new AbortController()];
  const record = { rounds: [], outcome: undefined, deadline: '2999-01-01T00:00:00.000Z' };
  const following = {
    liveTurns: createLiveTurns(),
    mirroredTurns: elsewhere,
    readSnapshot: async () => ({ turn: record, done: () => undefined }),
    now: Date.now,
    stopping: stopping.signal,
  };
  const next = followTurn(following, subject, START_OF_OUTPUT, left.signal).next();
  next.catch(() => undefined);
  return { next, asked, elsewhere, stopping, left };
}

test.each(['stopping', 'left'] as const)(
  'who waits for another process is let go at once, and its mirror with it: %s',
  async (why) => {
    const { next, asked, elsewhere, ...signals } = follower();
    while (asked.length === 0) await new Promise(setImmediate);
    const { turn, leave } = elsewhere.follow(subject, 1);
    leave();
    expect(turn.hasEnded()).toBe(false);
    const reason = new Error(why);
    signals[why].abort(reason);
    await expect(next).rejects.toBe(reason);
    expect(turn.hasEnded()).toBe(true);
  },
);

test('the record of an ended turn is released when its end was passed on', async () => {
  const rounds = [{ reasoning: '', text: 'Hello.', calls: [] }];
  const outcome = { failed: new Error('failed') };
  const turn = { rounds, outcome, deadline: '2999-01-01T00:00:00.000Z' };
  const steps: string[] = [];
  const following = {
    liveTurns: createLiveTurns(),
    mirroredTurns: {
      follow: () => {
        throw new Error('not followed');
      },
    },
    readSnapshot: async () => ({ turn, done: () => void steps.push('released') }),
    now: Date.now,
    stopping: new AbortController().signal,
  };
  const { signal } = new AbortController();
  for await (const { type } of followTurn(following, subject, START_OF_OUTPUT, signal))
    steps.push(type);
  expect(steps).toEqual(['text', 'ended', 'released']);
});
