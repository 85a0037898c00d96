import { expect, test } from '@jest/globals';
import type { CallToolResult } from '@modelcontextprotocol/client';
import { createMessageRepair, isReplaced } from '../../../../../infra/mcp/thread/malformed.ts';

/** Repairs messages to a client that has sent a request with this id. */
function withPending(id: number) {
  const repairs = createMessageRepair();
  repairs.noteSent({ jsonrpc: '2.0', id, method: 'tools/call' });
  return repairs;
}

/** The result of a response after its repair. */
function repaired(
  repairs: ReturnType<typeof createMessageRepair>,
  id: number | string,
  result = {},
) {
  const message = { jsonrpc: '2.0' as const, id, result };
  repairs.repair(message);
  return message.result;
}

test('of the names of malformed tools, no more is kept than a name may have', () => {
  const repairs = withPending(1);
  const tools = [{ name: 'long'.repeat(100_000) }];
  repairs.repair({ jsonrpc: '2.0', id: 1, result: { tools } });
  expect(repairs.takeMalformed()).toEqual([
    { name: 'long'.repeat(32), flaw: 'its inputSchema is not valid' },
  ]);
  expect(repairs.takeMalformed()).toEqual([]);
});

test('a result without a pending request is emptied', () => {
  const repairs = withPending(1);
  const result = { content: [{ type: 'text', text: 'a' }] };
  expect(repaired(repairs, 2, result)).toEqual({});
  expect(repaired(repairs, '1', result)).toEqual(result);
  expect(repaired(repairs, 1, result)).toEqual({});
});

test('so is an error, and the late result of a cancelled request', () => {
  const repairs = withPending(1);
  const error = { code: 5, message: 'a', data: ['b'] };
  const message = { jsonrpc: '2.0' as const, id: 2, error };
  repairs.repair(message);
  expect(message.error).toEqual({ code: 5, message: '' });
  const params = { requestId: 1 };
  repairs.noteSent({ jsonrpc: '2.0', method: 'notifications/cancelled', params });
  expect(repaired(repairs, 1, { content: [] })).toEqual({});
});

test('after a thousand invalid items of a result, the others are not checked', () => {
  const valid = { type: 'text', text: 'a' };
  const content = [...Array(1_000).fill(1), valid];
  const result = repaired(withPending(1), 1, { content }) as { content: CallToolResult['content'] };
  expect(result.content.every(isReplaced)).toBe(true);
  const fewer = repaired(withPending(1), 1, { content: content.slice(1) });
  expect((fewer as typeof result).content.at(-1)).toEqual(valid);
});
