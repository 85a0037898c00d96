import { expect, test } from '@jest/globals';
import { createMessageRepair } from '../../../../../infra/mcp/thread/malformed.ts';

test('of the names of malformed tools, no more is kept than a name may have', () => {
  const repairs = createMessageRepair();
  const tools = [{ name: 'long'.repeat(100_000) }];
  repairs.repair({ jsonrpc: '2.0', id: 1, result: { tools } });
  expect(repairs.takeMalformed()).toEqual([
    { name: 'long'.repeat(32), flaw: 'its inputSchema is not valid' },
  ]);
  expect(repairs.takeMalformed()).toEqual([]);
});
