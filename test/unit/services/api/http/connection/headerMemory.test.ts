import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, test } from '@jest/globals';
import { limitHeaderMemory } from '../../../../../../services/api/http/connection/headerMemory.ts';
import { registeredResources } from '../../../../../../shared/lib/concurrency/resources.ts';
import { KIB } from '../../../../../../shared/lib/units.ts';

const usage = () =>
  registeredResources()
    .find(([name]) => name === 'test_headers')![1]
    .usage();

function exchange(bytes: number, socket = new EventEmitter()) {
  const response = new EventEmitter();
  const request = { url: '/', rawHeaders: ['x', 'v'.repeat(bytes)], socket };
  return {
    socket,
    response,
    parts: [request as unknown as IncomingMessage, response as unknown as ServerResponse] as const,
  };
}

test('large headers are counted until their response or their connection is closed', () => {
  const holds = limitHeaderMemory('test_headers', 32 * KIB);
  const small = exchange(KIB);
  const first = exchange(15 * KIB);
  const second = exchange(15 * KIB);
  const third = exchange(15 * KIB);
  expect(holds(...small.parts)).toBe(true);
  expect(usage().bytes?.used).toBe(0);
  expect([holds(...first.parts), holds(...second.parts), holds(...third.parts)]).toEqual([
    true,
    true,
    false,
  ]);
  expect(usage()).toMatchObject({ bytes: { limit: 32 * KIB }, rejected: { process: 1 } });
  expect(holds(...small.parts)).toBe(true);

  first.response.emit('close');
  first.socket.emit('close');
  expect(holds(...third.parts)).toBe(true);
  // A request that waits behind another one: Node does not close its response.
  second.socket.emit('close');
  third.socket.emit('close');
  expect(usage().bytes?.used).toBe(0);
});

test('many small headers are large', () => {
  const holds = limitHeaderMemory('test_many_headers', 0);
  const { response, parts } = exchange(0);
  const [request] = parts;
  request.rawHeaders = Array.from({ length: 100 }, () => 'x');
  expect(holds(request, response as unknown as ServerResponse)).toBe(false);
});
