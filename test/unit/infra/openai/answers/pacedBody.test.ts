import { expect, test } from '@jest/globals';
import { createPacedBody } from '../../../../../infra/openai/answers/pacedBody.ts';
import type { AnswerOrError } from '../../../../../infra/openai/answers/responseReaders.ts';
import { runPaced } from '../../../../../shared/lib/concurrency/pacedSteps.ts';

/** Takes part of a millisecond for each piece. */
const PIECE_MS = 0.5;
const KIB = 1_024;

/** A body that is read slowly, the provider that it holds back, and what came of it. */
function bodyOf(
  account_id: string,
  { endsAtBytes = Infinity, isStream = true, pieceMs = PIECE_MS } = {},
) {
  const seen = { read: 0, largest: 0, paused: false, pauses: 0, released: 0 };
  const { promise: result, resolve } = Promise.withResolvers<AnswerOrError>();
  const body = createPacedBody({
    account_id,
    isStream,
    reader: {
      mostBytes: Infinity,
      add(chunk) {
        const until = performance.now() + pieceMs;
        while (performance.now() < until);
        seen.read += chunk.length;
        seen.largest = Math.max(seen.largest, chunk.length);
        return seen.read >= endsAtBytes ? 'enough' : undefined;
      },
      end: () => `all ${seen.read}`,
      release: () => (seen.released += 1),
    },
    flow: {
      pause() {
        seen.paused = true;
        seen.pauses += 1;
      },
      resume: () => (seen.paused = false),
    },
    done: resolve,
  });
  return { body, seen, result };
}
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Sends so many bytes as a socket does: no more while it is paused. */
async function send({ body, seen }: ReturnType<typeof bodyOf>, bytes: number): Promise<void> {
  for (let sent = 0; sent < bytes; sent += 16 * KIB) {
    while (seen.paused) await nextTurn();
    body.add(Buffer.alloc(16 * KIB));
  }
}

test('a flood is read in small pieces, and the provider waits meanwhile', async () => {
  const flooded = bodyOf('a');
  await send(flooded, 1_024 * KIB);
  flooded.body.end();
  expect(await flooded.result).toBe(`all ${1_024 * KIB}`);
  expect(flooded.seen.largest).toBeLessThanOrEqual(8 * KIB);
  expect(flooded.seen.pauses).toBeGreaterThan(5);
  expect(flooded.seen).toMatchObject({ paused: false, released: 1 });
});

test('the event loop turns while a flood is read, and other accounts take their turns', async () => {
  const floods = Array.from({ length: 16 }, () => bodyOf('a'));
  for (const { body } of floods) body.add(Buffer.alloc(64 * KIB));
  const other = bodyOf('b');
  other.body.add(Buffer.alloc(16 * KIB));
  other.body.end();
  await other.result;
  const read = floods.reduce((sum, { seen }) => sum + seen.read, 0);
  expect(read).toBeLessThan((16 * 64 * KIB) / 2);
  for (const { body } of floods) body.end();
  await Promise.all(floods.map(({ result }) => result));
});

test('what has arrived is read before the failure of its connection is the result', async () => {
  const cut = bodyOf('a');
  cut.body.add(Buffer.alloc(64 * KIB));
  cut.body.end(new Error('cut'));
  expect(await cut.result).toEqual(new Error('cut'));
  expect(cut.seen.read).toBe(64 * KIB);
  const complete = bodyOf('a', { endsAtBytes: 64 * KIB });
  complete.body.add(Buffer.alloc(64 * KIB));
  complete.body.end(new Error('cut'));
  expect(await complete.result).toBe('enough');
});

test('a cancelled body is read no further, and its memory is released', async () => {
  const cancelled = bodyOf('a');
  cancelled.body.add(Buffer.alloc(128 * KIB));
  cancelled.body.cancel();
  const { read } = cancelled.seen;
  for (let turns = 0; turns < 20; turns += 1) await nextTurn();
  expect(cancelled.seen.read).toBe(read);
  expect(cancelled.seen.released).toBe(1);
});

/** Sends chunks of one byte as a connection does: no more while it is paused. Returns the most of a turn. */
async function sendBytes({ body, seen }: ReturnType<typeof bodyOf>, bytes: number) {
  let most = 0;
  for (let sent = 0; sent < bytes;) {
    const before = sent;
    for (; !seen.paused && sent < bytes; sent += 1) body.add(Buffer.from('x'));
    most = Math.max(most, sent - before);
    await nextTurn();
  }
  return most;
}

test.each([
  ['a stream', true],
  ['another body', false],
])('of %s in chunks of one byte, a turn of the event loop reads few', async (_, isStream) => {
  const tiny = bodyOf('a', { isStream, pieceMs: 0 });
  const most = await sendBytes(tiny, 100_000);
  tiny.body.end();
  expect(await tiny.result).toBe('all 100000');
  expect(most).toBeLessThan(4_000);
  expect(tiny.seen.paused).toBe(false);
});

test('a body that is no stream is read as it arrives, whatever waits', () => {
  let steps = 50;
  runPaced('a', () => {
    const until = performance.now() + PIECE_MS;
    while (performance.now() < until);
    steps -= 1;
    return steps > 0;
  });
  const whole = bodyOf('a', { isStream: false });
  whole.body.add(Buffer.alloc(64 * KIB));
  expect(whole.seen).toMatchObject({ read: 64 * KIB, largest: 64 * KIB, pauses: 0 });
});
