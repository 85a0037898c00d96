import { describe, expect, test } from '@jest/globals';
import { resolveStoreName } from '../../../../services/cli/log/copy.ts';
import { maskCredentials } from '../../../../services/cli/failure.ts';
import { createOutput, jsonLine } from '../../../../services/cli/output.ts';
import { escapeControls } from '../../../../shared/lib/terminal.ts';

const NASTY = 'a\u001b[2Jb\r\nc\u202ed\u2066e\u0085f\u2028g\ud800h\u200bi\u007fj';

describe('text that somebody else has chosen', () => {
  test('is the same text again when its JSON is read, which has no such character either', () => {
    expect(JSON.parse(jsonLine({ name: NASTY }))).toEqual({ name: NASTY });
    expect(jsonLine({ name: NASTY })).toBe(escapeControls(jsonLine({ name: NASTY })));
  });
});

describe('output', () => {
  const rows = [
    { id: 'one', name: NASTY },
    { id: 'three', name: 'x' },
  ];
  function written(json: boolean): string {
    let text = '';
    const output = createOutput(json, (more) => (text += more));
    output.table(rows, { ID: ({ id }) => id, NAME: ({ name }) => name });
    return text;
  }

  test('of a list is a table with aligned columns under headers', () => {
    expect(written(false)).toBe(`ID     NAME\none    ${escapeControls(NASTY)}\nthree  x\n`);
  });

  test('of a list is one JSON array where JSON is asked for', () => {
    expect(JSON.parse(written(true))).toEqual(rows);
    expect(written(true).split('\n')).toHaveLength(2);
  });
});

test('no user and no password of a URL is told', () => {
  expect(maskCredentials('at esdb://admin:p/w@d@host:2113?tls=false, and a@b')).toBe(
    'at esdb://…@host:2113?tls=false, and a@b',
  );
});

describe('a store is named', () => {
  test('by a folder, a connection string, or a variable that holds one', () => {
    expect(resolveStoreName('./data', 'from', {})).toBe('./data');
    expect(resolveStoreName('esdb://host:2113', 'from', {})).toBe('esdb://host:2113');
    expect(resolveStoreName('env:A_URL', 'to', { A_URL: 'esdb://a:b@c' })).toBe('esdb://a:b@c');
  });

  test('not by a variable that is not set, nor by an argument with a password', () => {
    expect(() => resolveStoreName('env:A_URL', 'to', {})).toThrow('--to env:A_URL');
    expect(() => resolveStoreName('esdb://a:hidden@c', 'to', {})).toThrow('--to env:TO_URL');
    expect(() => resolveStoreName('esdb://a:hidden@c', 'to', {})).not.toThrow('hidden');
  });
});
