import { expect, test } from '@jest/globals';
import {
  isNewPane,
  MOST_PANES,
  nextNewPane,
  panesOf,
  parseChatSearch,
  searchOf,
} from '../../../../../../services/console/src/chat/panes.ts';

test('the panes of an address survive a round trip', () => {
  for (const panes of [['session_a'], ['session_a', 'new1'], ['new1', 'new2'], ['new1']])
    expect(panesOf(parseChatSearch({ ...searchOf(panes) }))).toEqual(panes);
  expect(searchOf(['new1'])).toEqual({});
});

test('an address without sessions has one new pane, and others have each session once', () => {
  expect(panesOf(parseChatSearch({ sessions: 7 }))).toEqual(['new1']);
  expect(panesOf({ sessions: ',' })).toEqual(['new1']);
  expect(panesOf({ sessions: 'session_a,,session_b,session_a' })).toEqual([
    'session_a',
    'session_b',
  ]);
  expect(panesOf({ sessions: 'a,b,c,d,e,f' })).toHaveLength(MOST_PANES);
});

test('one more new pane has another name', () => {
  expect(nextNewPane(['session_a'])).toBe('new1');
  expect(nextNewPane(['new2', 'new1'])).toBe('new3');
  expect(isNewPane(nextNewPane([]))).toBe(true);
  expect(isNewPane('session_a')).toBe(false);
});
