import { createHmac, randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { newMasterKey } from '../../../../../shared/eventlog/encryption/masterKeys.ts';
import { openText } from '../../../../../shared/eventlog/encryption/protectedText.ts';
import { masterKeysOf, newTextKey, seal } from '../../../../support/stores/textKeys.ts';

const idOf = (line: string): string => line.slice(0, 16);

describe('a wrapped key', () => {
  test('opens with its master key, and opens what it had closed', () => {
    const masterKeys = masterKeysOf();
    const key = newTextKey();
    const box = seal('grüße', key);
    const wrapped = masterKeys.wrap(key);
    expect(wrapped).toMatchObject({ key_id: key.id, master_key_id: masterKeys.ids[0] });
    expect(wrapped.wrapped.length).toBe(60);
    expect(Buffer.from(wrapped.wrapped).includes(Buffer.from(key.secret, 'base64url'))).toBe(false);
    expect(openText(box, masterKeys.unwrap(wrapped), 'session-session_1').text).toBe('grüße');
  });

  test('is wrapped by the first key of the file, and opens whichever line its key stands in', () => {
    const [older, newer] = [newMasterKey(), newMasterKey()];
    const wrapped = masterKeysOf(older).wrap(newTextKey());
    const both = masterKeysOf('# the new one', newer, '', ` ${older}\r`);
    expect(both.ids).toEqual([idOf(newer), idOf(older)]);
    expect(both.unwrap(wrapped).id).toBe(wrapped.key_id);
    expect(both.wrap(newTextKey()).master_key_id).toBe(idOf(newer));
  });

  test('whose master key is not here is missing, by the name of that master key', () => {
    const wrapped = masterKeysOf().wrap(newTextKey());
    expect(() => masterKeysOf().unwrap(wrapped)).toThrow(
      expect.objectContaining({
        code: 'key_missing',
        retriable: true,
        message: expect.stringContaining(wrapped.master_key_id),
      }),
    );
  });

  test('does not open as another key: it was moved to that one’s row', () => {
    const masterKeys = masterKeysOf();
    const [one, other] = [masterKeys.wrap(newTextKey()), masterKeys.wrap(newTextKey())];
    expect(() => masterKeys.unwrap({ ...one, key_id: other.key_id })).toThrow(
      expect.objectContaining({ code: 'key_missing', message: expect.stringContaining('changed') }),
    );
  });

  test('does not open once a bit of it, or its length, is another', () => {
    const masterKeys = masterKeysOf();
    const wrapped = masterKeys.wrap(newTextKey());
    const refused = (bytes: Uint8Array): void =>
      expect(() => masterKeys.unwrap({ ...wrapped, wrapped: bytes })).toThrow(
        expect.objectContaining({ code: 'key_missing' }),
      );
    fc.assert(
      fc.property(fc.nat(59), fc.nat(7), (at, bit) => {
        const bytes = Buffer.from(wrapped.wrapped);
        bytes[at]! ^= 1 << bit;
        refused(bytes);
      }),
    );
    for (const length of [0, 28, 59]) refused(wrapped.wrapped.subarray(0, length));
  });
});

describe('a master key file', () => {
  const problemOf = (...lines: string[]): string => {
    try {
      masterKeysOf(...lines);
    } catch (error) {
      expect(error).toMatchObject({ code: 'configuration_invalid' });
      return (error as Error).message;
    }
    throw new Error('it was taken');
  };
  /** A line whose id fits, however long its key is. */
  const lineOf = (bytes: Buffer): string =>
    `${createHmac('sha256', bytes).update('turnlog master key').digest('base64url').slice(0, 16)}.${bytes.toString('base64url')}`;

  test('with a fitting id and key of 32 bytes is taken', () => {
    expect(masterKeysOf(lineOf(randomBytes(32))).ids).toHaveLength(1);
  });

  test.each([
    ['nothing', ['', '# none'], 'it has no key. Restore it from a backup.'],
    ['a key of 16 bytes', [lineOf(randomBytes(16))], 'line 1 has a key of 16 bytes'],
    ['a key of 33 bytes', [lineOf(randomBytes(33))], 'line 1 has a key of 33 bytes'],
    ['no id', [randomBytes(32).toString('base64url')], 'line 1 is not a master key'],
    ['a key in hex', [randomBytes(32).toString('hex')], 'line 1 is not a master key'],
    ['three parts', [`${newMasterKey()}.x`], 'line 1 is not a master key'],
  ])('with %s is refused', (_what, lines, problem) => {
    expect(problemOf(...lines)).toContain(problem);
  });

  test('with one key twice is refused', () => {
    const line = newMasterKey();
    expect(problemOf(line, line)).toContain(`line 2 repeats the key ${idOf(line)}`);
  });

  test('whose key was swapped for another one under the same id is refused, and the key is not told', () => {
    const [line, other] = [newMasterKey(), newMasterKey()];
    const problem = problemOf(`${idOf(line)}.${other.slice(17)}`);
    expect(problem).toContain('line 1 was changed');
    expect(problem).not.toContain(other.slice(17, 30));
  });
});
