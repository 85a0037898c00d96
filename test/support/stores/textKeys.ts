import { randomBytes } from 'node:crypto';
import { newMasterKey, parseMasterKeys } from '../../../shared/eventlog/encryption/masterKeys.ts';
import {
  createTextEncrypter,
  commitText,
  type ProtectedText,
  type TextKey,
} from '../../../shared/eventlog/encryption/protectedText.ts';

/** A key of texts that nobody has used. */
export const newTextKey = (): TextKey => ({
  id: randomBytes(12).toString('base64url'),
  secret: randomBytes(32).toString('base64url'),
});

/** A text as a stream stores it. */
export function seal(
  text: string,
  key: TextKey,
  stream = 'session-session_1',
): Required<ProtectedText> {
  const committed = commitText(text);
  return { sha256: committed.sha256, box: createTextEncrypter(key, stream)(committed) };
}

/** Master keys as a file with these lines has them; by default one new key. */
export const masterKeysOf = (...lines: string[]) =>
  parseMasterKeys(lines.length === 0 ? newMasterKey() : lines.join('\n'), 'master.key');
