import { expect, test } from '@jest/globals';
import {
  formatPanes,
  isNewPane,
  MOST_PANES,
  nextNewPane,
  parsePanes,
} from '../../../../../../services/console/src/chat/panes.ts';

test('the panes of an address survive a round trip', () => {
  for (const panes of [['session_a'], ['session_a', 'new1'], ['new1', 'new2']])
    expect(parsePanes(formatPanes(panes))).toEqual(panes);
  expect(formatPanes(parsePanes(undefined))).toBeUndefined();
});

test('an address without sessions has one new pane, and others have each session once', () => {
  expect(parsePanes(undefined)).toEqual(['new1']);
  expect(parsePanes(',')).toEqual(['new1']);
  expect(parsePanes('session_a,,session_b,session_a')).toEqual(['session_a', 'session_b']);
  expect(parsePanes('a,b,c,d,e,f')).toHaveLength(MOST_PANES);
});

test('one more new pane has a name of its own', () => {
  expect(nextNewPane(['session_a'])).toBe('new1');
  expect(nextNewPane(['new2', 'new1'])).toBe('new3');
  expect(isNewPane(nextNewPane([]))).toBe(true);
  expect(isNewPane('session_a')).toBe(false);
});
