import { createSecretKey, randomBytes } from 'node:crypto';
import { newMasterKey, parseMasterKeys } from '../../../shared/eventlog/masterKeys.ts';
import type { TextKey } from '../../../shared/eventlog/protectedText.ts';

/** A key of texts that nobody has used. */
export const newTextKey = (): TextKey => ({
  id: randomBytes(12).toString('base64url'),
  secret: createSecretKey(randomBytes(32)),
});

/** Master keys as a file with these lines has them; by default one new key. */
export const masterKeysOf = (...lines: string[]) =>
  parseMasterKeys(lines.length === 0 ? newMasterKey() : lines.join('\n'), 'master.key');
