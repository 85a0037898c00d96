import { describe, expect, test } from '@jest/globals';
import {
  createRedaction,
  parseSelectors,
} from '../../../../../shared/transparency/proof/redaction.ts';
import type { ShownEvent } from '../../../../../shared/transparency/proof/shownTexts.ts';

const text = (shown: string) => ({ sha256: 'ab'.repeat(32), salt: 'a'.repeat(22), text: shown });
const WITHHELD = { sha256: 'ab'.repeat(32) };

const eventOf = (data: object): ShownEvent => ({
  id: 'e',
  stream: 'session-session_1',
  revision: 4,
  type: 'session.tool_called.v1',
  data,
  metadata: {
    account_id: 'acct_1',
    key_id: 'key_1',
    request_id: 'r',
    causation_id: 'r',
    recorded_at: '2026-01-01T00:00:00.000Z',
    prev_hash: '',
    hash: '',
  },
});
const redacted = (selectors: string, data: object): unknown =>
  createRedaction(parseSelectors(selectors)!).apply(eventOf(data)).data;

describe('any redaction', () => {
  test('withholds what may be derived from texts, of all turns', () => {
    const call = { request_sha256: text('h'), response_id: text('r'), model: 'm' };
    const data = { turn: 2, call_id: text('c'), tool: text('t'), calls: [call] };
    expect(redacted('1.input', data)).toEqual({
      turn: 2,
      call_id: WITHHELD,
      tool: text('t'),
      calls: [{ request_sha256: WITHHELD, response_id: WITHHELD, model: 'm' }],
    });
    expect(redacted('2.tool', data)).toMatchObject({ tool: WITHHELD });
  });

  test.each([
    { calls: [{ request_sha256: 'ab'.repeat(32) }] },
    { calls: [{ response_id: `chatcmpl-offline-${'a1'.repeat(12)}` }] },
    { call_id: `call-offline-${'a1'.repeat(12)}` },
  ])('is refused beside a hash of a request in plain: %j', (data) => {
    expect(() => redacted('1.input', data)).toThrow(
      "The event at revision 4 holds a hash of the model's request in plain",
    );
  });

  test('leaves ids that earlier releases recorded of other providers', () => {
    const data = { turn: 1, call_id: 'call_abc', calls: [{ response_id: 'chatcmpl-1' }] };
    expect(redacted('1.input', data)).toEqual(data);
  });
});

test('without a redaction everything is shown as it is', () => {
  const data = { call_id: `call-offline-${'a1'.repeat(12)}`, input: text('i') };
  expect(createRedaction([]).apply(eventOf(data)).data).toEqual(data);
});
