import { describe, expect, test } from '@jest/globals';
import { parsePrefer } from '../../../../../services/api/http/preferHeader.ts';

describe('Prefer', () => {
  test.each([
    ['', false, undefined],
    ['respond-async', true, undefined],
    ['Respond-Async', true, undefined],
    [' respond-async ; x=y , wait = 5 ', true, 5],
    ['wait=10, respond-async', true, 10],
    ['wait="7"', false, 7],
    ['wait=0', false, 0],
    ['wait=1, wait=2', false, 1],
    ['wait=61', false, 60],
    ['wait=999999999', false, 60],
    ['handling=lenient, foo="a, respond-async, wait=3", wait=4', false, 4],
    ['foo="\\", wait=3", wait=4', false, 4],
    ['foo="unclosed, respond-async', false, undefined],
    ['wait', false, undefined],
    ['wait=', false, undefined],
    ['wait=-1', false, undefined],
    ['wait=1.5', false, undefined],
    ['wait=1e3', false, undefined],
    ['wait=9999999999', false, undefined],
    ['respond-async=no', false, undefined],
    ['respond-asynchronously', false, undefined],
    [',,,;=,"', false, undefined],
  ])('%j is read as RFC 7240 has it', (header, respondAsync, wait) => {
    expect(parsePrefer(header)).toEqual({ respondAsync, wait });
  });

  test('of any length is read in a moment, and one that is far too long not at all', () => {
    const began = performance.now();
    for (const char of [' ', ',', '"', ';', '=', '\\', '\t', 'a']) {
      expect(parsePrefer(`respond-async, ${char.repeat(1_000)}`).respondAsync).toBe(true);
      expect(parsePrefer(`respond-async, ${char.repeat(1_000_000)}`).respondAsync).toBe(false);
    }
    expect(performance.now() - began).toBeLessThan(5_000);
  });
});
