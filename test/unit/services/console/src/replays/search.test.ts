import { expect, test } from '@jest/globals';
import {
  cursorBefore,
  formatTurnId,
  parseNewReplaySearch,
  parseReplaySearch,
  parseTurnId,
} from '../../../../../../services/console/src/replays/search.ts';

const ID = { session_id: 'session_01kahz1c3sf6w9m3v5q7x9z1a3', turn: 12 };

test('a turn is read back from its address', () => {
  expect(parseTurnId(formatTurnId(ID))).toEqual(ID);
  for (const other of [undefined, 'session_1.2', `${ID.session_id}.0`, `${ID.session_id}.x`])
    expect(parseTurnId(other)).toBeUndefined();
});

test('the list is read from the turn itself', () => {
  expect(cursorBefore(ID)).toBe(`${ID.session_id}.0000000011`);
  expect(cursorBefore({ ...ID, turn: 1 })).toBe(`${ID.session_id}.0000000000`);
});

test('takes from an address only what a replay can show', () => {
  const search = { only: 'failed', compared: formatTurnId(ID) };
  expect(parseReplaySearch(search)).toEqual(search);
  expect(parseReplaySearch({ only: 'other', compared: 'x' })).toEqual({});
  expect(parseNewReplaySearch({ session: ID.session_id, turn: 3 })).toEqual({
    session: ID.session_id,
    turn: 3,
  });
  expect(parseNewReplaySearch({ session: 1, turn: 'x' })).toEqual({});
});
