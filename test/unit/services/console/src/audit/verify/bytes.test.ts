import { expect, test } from '@jest/globals';
import { fromBase64 } from '../../../../../../../services/console/src/audit/verify/bytes.ts';

test('reads base64 of any length', () => {
  const bytes = Buffer.alloc(1_000_000, 'bytes');
  expect(fromBase64(bytes.toString('base64'))?.length).toBe(bytes.length);
});
