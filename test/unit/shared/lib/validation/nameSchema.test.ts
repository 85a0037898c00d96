import { performance } from 'node:perf_hooks';
import { expect, test } from '@jest/globals';
import { requireName } from '../../../../../shared/lib/validation/nameSchema.ts';

test.each(['a', ' a ', 'Größe 7', '👩‍👩‍👧‍👦', '名前', '\u200eעברית', 'x'.repeat(256), '😀'.repeat(256)])(
  '%j is a name, and is kept as it is',
  (name) => {
    expect(requireName(name)).toBe(name);
  },
);

test.each([
  ['', 'must not be empty'],
  ['   ', 'visible character'],
  ['\u200b\u00a0', 'visible character'],
  ['\u3164\u115f\ufe0f', 'visible character'],
  ['\u00ad\u034f\u061c\u2063\u2800', 'visible character'],
  ['a\n', 'control characters'],
  ['\u001b]0;x\u0007', 'control characters'],
  ['a\u2066b', 'control characters'],
  ['x'.repeat(257), 'more than 256 characters'],
  ['a\ud800', 'well-formed'],
])('%j is no name, and the refusal says why', (name, why) => {
  expect(() => requireName(name)).toThrow(
    expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining(why) }),
  );
});

test.each([' ', 'a', ' a', '\u200b'])(
  'a million of %j is refused as fast as one can look at it',
  (text) => {
    const began = performance.now();
    expect(() => requireName(`${text.repeat(1_000_000)}\n`)).toThrow();
    // A pattern that tries every beginning anew takes hours.
    expect(performance.now() - began).toBeLessThan(10_000);
  },
);
