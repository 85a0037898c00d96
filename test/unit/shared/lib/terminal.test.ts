import { describe, expect, test } from '@jest/globals';
import { escapeControls, formatLogLine } from '../../../../shared/lib/terminal.ts';

const NASTY = 'a\u001b[2Jb\r\nc\u202ed\u2066e\u0085f\u2028g\ud800h\u200bi\u007fj';

describe('text that somebody else has chosen', () => {
  test('is shown on one line, with nothing that a terminal obeys', () => {
    expect(escapeControls(NASTY)).toBe(
      String.raw`a\u001b[2Jb\u000d\u000ac\u202ed\u2066e\u0085f\u2028g\ud800h\u200bi\u007fj`,
    );
    expect(escapeControls('Ünïcode 🙂 👨‍👩‍👧 名前')).toBe('Ünïcode 🙂 👨‍👩‍👧 名前');
  });
});

describe('a log line on a terminal', () => {
  const time = '2026-11-26T17:28:35.803Z';
  const clockTime = new Date(time).toTimeString().slice(0, 8);

  test('has the time of the clock on the wall, level, message and fields', () => {
    const fields = {
      url: 'http://127.0.0.1:3000',
      services: ['api'],
      reason: 'no "luck" here',
      n: 3,
    };
    expect(formatLogLine(JSON.stringify({ level: 'info', time, ...fields, msg: 'it is up' }))).toBe(
      `${clockTime} INFO  it is up url=http://127.0.0.1:3000 services=["api"] reason="no \\"luck\\" here" n=3\n`,
    );
  });

  test('is followed by the stack of an error', () => {
    const err = { message: 'bad', stack: 'Error: bad\n    at here\n    at there' };
    expect(formatLogLine(JSON.stringify({ level: 'error', time, err, msg: 'it failed' }))).toBe(
      `${clockTime} ERROR it failed\n    Error: bad\n    at here\n    at there\n`,
    );
  });

  test('controls no terminal', () => {
    const text = formatLogLine(JSON.stringify({ level: 'warn', time, name: NASTY, msg: NASTY }));
    expect(text.trimEnd()).toBe(escapeControls(text.trimEnd()));
  });
});
