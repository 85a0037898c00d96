import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createMasterKeyFile } from '../../../infra/files/masterKeyFile.ts';

/** The master key file of all services of tests that keep their keys in a database. */
export function testMasterKeyFile(): string {
  const file = join(tmpdir(), `turnlog-test-${process.getuid?.() ?? 0}.key`);
  createMasterKeyFile(file);
  return file;
}
