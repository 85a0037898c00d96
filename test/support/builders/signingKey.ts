import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeSigningKey } from '../../../services/compose/signingKeys.ts';

/** The file of the key that signs the transparency logs of tests. */
export function testSigningKeyFile(): string {
  const file = join(tmpdir(), `turnlog-test-${process.getuid?.() ?? 0}.pem`);
  makeSigningKey(file);
  return file;
}
