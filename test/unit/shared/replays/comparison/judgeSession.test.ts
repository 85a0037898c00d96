import { expect, test } from '@jest/globals';
import { fromUUIDBytes } from 'typeid-js';
import { typeIds } from '../../../../../infra/ids/typeIds.ts';
import { judgeSessionId } from '../../../../../shared/replays/comparison/judgeSession.ts';
import { isIdOf } from '../../../../../shared/eventlog/streams.ts';
import { turnStarted } from '../../../../support/builders/events.ts';

const { data: started } = turnStarted(3) as Extract<
  ReturnType<typeof turnStarted>,
  { type: 'session.turn_started.v1' }
>;
const recorded_at = '2026-11-23T09:00:00.123Z';
const replayed = { session_id: 'session_1', started, recorded_at };

test('a judge has the same session whoever asks, and each check of a turn one of its own', () => {
  const id = judgeSessionId(typeIds, replayed, 0);
  expect(judgeSessionId(typeIds, { ...replayed }, 0)).toBe(id);
  const others = [
    judgeSessionId(typeIds, replayed, 1),
    judgeSessionId(typeIds, { ...replayed, session_id: 'session_2' }, 0),
    judgeSessionId(typeIds, { ...replayed, started: { ...started, turn: 4 } }, 0),
  ];
  expect(new Set([id, ...others]).size).toBe(4);
});

test('its id is one of a session, of the time at which the turn ended', () => {
  for (let check = 0; check < 100; check += 1) {
    const id = judgeSessionId(typeIds, replayed, check);
    expect(isIdOf('session', id)).toBe(true);
    const before = new Uint8Array(16);
    new DataView(before.buffer).setBigUint64(0, BigInt(Date.parse(recorded_at)) << 16n);
    expect(id.slice(0, 17)).toBe(fromUUIDBytes('session', before).slice(0, 17));
  }
});
