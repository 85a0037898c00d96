import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { createMemoryBroadcast } from '../../../../../infra/broadcast/memory.ts';
import { createLiveTurns, type LiveTurn } from '../../../../../shared/runs/live/liveTurns.ts';
import { createMirroredTurns } from '../../../../../shared/runs/live/mirrorTurns.ts';
import { startSendingDeltas } from '../../../../../shared/runs/live/sendDeltas.ts';
import { START_OF_OUTPUT } from '../../../../../shared/sessions/turns/turnOutputPosition.ts';
import type { Broadcast } from '../../../../../shared/ports/broadcast.ts';

const KEY = { id: 'k'.repeat(16), secret: Buffer.alloc(32, 7).toString('base64url') };
const keys = { find: () => new Map([[KEY.id, KEY]]) };
const subject = { account_id: 'a', session_id: 'session_1', turn: 3 };
const call = {
  turn: 3,
  round: 1,
  call_id: 'c',
  tool: 't',
  arguments: '{}',
  result: 'r',
  is_error: false,
  duration_ms: 1,
};

/** A turn that one member runs, and another mirrors; `lose` says which messages get lost. */
function mirrored(lose: (message: string) => boolean = () => false) {
  const { join } = createMemoryBroadcast();
  const sent: string[] = [];
  const owner: Broadcast = join('owner');
  const lossy: Broadcast = {
    ...owner,
    send(to, message) {
      sent.push(message);
      return lose(message) || owner.send(to, message);
    },
  };
  const live = createLiveTurns();
  startSendingDeltas({ broadcast: lossy, live });
  const publisher = live.begin(subject, true, KEY);
  const elsewhere = createMirroredTurns({ broadcast: join('other'), keys });
  return { publisher, elsewhere, sent };
}

/** The text of a mirror up to its end, as somebody reads who follows. */
async function textOf(turn: LiveTurn, kind: 'reasoning' | 'text' = 'text'): Promise<string> {
  let text = '';
  for (let place = START_OF_OUTPUT; ;) {
    const part = turn.nextPart(place);
    if (part) {
      if (part.type === kind) text += part.text;
      place = part.position;
    } else if (turn.hasEnded()) return text;
    else await turn.nextChange();
  }
}

const TEXT = Array.from({ length: 3_000 }, (_, index) => `${index} 😀é\u0001"`).join(' ');

test('reasoning is mirrored apart from the text, and encrypted', async () => {
  const { publisher, elsewhere, sent } = mirrored();
  publisher.publishText(1, 'I have ', 'reasoning');
  const { turn } = elsewhere.follow(subject, 1);
  const followed = [textOf(turn, 'reasoning'), textOf(turn)];
  while (sent.length === 0) await sleep(5);
  publisher.publishText(1, 'to add.', 'reasoning');
  publisher.publishText(1, 'Two.');
  publisher.publishEnd();
  expect(await Promise.all(followed)).toEqual(['I have to add.', 'Two.']);
  expect(sent.join()).not.toMatch(/have|add/);
});

test('a turn is heard elsewhere as it comes, byte for byte, and nobody between reads it', async () => {
  const { publisher, elsewhere, sent } = mirrored();
  publisher.publishText(1, 'first ');
  const { turn: mirror } = elsewhere.follow(subject, 1);
  expect(elsewhere.follow(subject, 1).turn).toBe(mirror);
  const heard = textOf(mirror);
  await sleep(20);
  for (const piece of TEXT.match(/[^]{1,700}/gu)!) publisher.publishText(1, piece);
  publisher.publishEnd();
  expect(await heard).toBe(`first ${TEXT}`);
  expect(sent.filter((message) => message.includes('first'))).toEqual([]);
  expect(Math.max(...sent.map((message) => Buffer.byteLength(message)))).toBeLessThan(7_900);
}, 15_000);

test('what gets lost is asked for again', async () => {
  let seed = 1;
  // A third of the messages, in no rhythm: batches have one.
  const { publisher, elsewhere } = mirrored(
    (message) => message.includes('"text"') && (seed = (seed * 3) % 257) < 86,
  );
  const { turn: mirror } = elsewhere.follow(subject, 1);
  const heard = textOf(mirror);
  for (const piece of TEXT.match(/[^]{1,700}/gu)!) publisher.publishText(1, piece);
  // A gap is noticed when something comes behind it.
  while (mirror.nextPart({ round: 1, chars: TEXT.length, calls: 0 }) === undefined) {
    publisher.publishText(1, '.');
    await sleep(20);
  }
  publisher.publishEnd();
  expect(await heard).toMatch(/^[^]*\.$/);
  expect((await heard).startsWith(TEXT)).toBe(true);
}, 30_000);

test('a mirror ends where the record has more: at a tool call, and at the end of the turn', async () => {
  const { publisher, elsewhere } = mirrored();
  publisher.publishText(1, 'one');
  const first = textOf(elsewhere.follow(subject, 1).turn);
  await sleep(20);
  publisher.publishToolCall(call);
  expect(await first).toBe('one');
  const { turn: second } = elsewhere.follow(subject, 2);
  publisher.publishText(2, 'two');
  await sleep(100);
  expect(second.nextPart({ round: 2, chars: 0, calls: 0 })).toMatchObject({ text: 'two' });
  publisher.publishEnd();
  await second.nextChange();
  expect(second.hasEnded()).toBe(true);
});

test('what somebody else sends in between opens nowhere', async () => {
  const { join } = createMemoryBroadcast();
  const stranger = join('stranger');
  const elsewhere = createMirroredTurns({ broadcast: join('other'), keys });
  const { turn: mirror } = elsewhere.follow(subject, 1);
  const of = { is: 'text', session_id: 'session_1', turn: 3, round: 1, chars: 0, key: KEY.id };
  for (const box of ['', 'AAAA', Buffer.alloc(100).toString('base64url')])
    stranger.send('other', JSON.stringify({ ...of, box }));
  for (const rubbish of ['', '{', '[]', '{"is":"follow"}', '{"is":"recorded"}'])
    stranger.send('other', rubbish);
  await sleep(50);
  expect([mirror.nextPart(START_OF_OUTPUT), mirror.hasEnded()]).toEqual([undefined, false]);
});

test('a mirror ends with the last who follows it, though its turn goes on', async () => {
  const { publisher, elsewhere } = mirrored();
  const [one, other] = [elsewhere.follow(subject, 1), elsewhere.follow(subject, 1)];
  one.leave();
  one.leave();
  publisher.publishText(1, 'goes on');
  await sleep(50);
  expect(other.turn.nextPart(START_OF_OUTPUT)).toMatchObject({ text: 'goes on' });
  expect(other.turn.hasEnded()).toBe(false);
  other.leave();
  expect(other.turn.hasEnded()).toBe(true);
  expect(elsewhere.follow(subject, 1).turn).not.toBe(other.turn);
});
