import { describe, expect, test } from '@jest/globals';
import {
  TEXTS,
  type TextLocations,
} from '../../../../../shared/eventlog/encryption/textLocations.ts';
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

/** A value with a text at each place. */
function withTexts(places: TextLocations): unknown {
  if (places === 'text') return text('secret');
  if ('items' in places) return [withTexts(places.items)];
  return Object.fromEntries(
    [...places.members].map(([name, below]) => [name, withTexts(below)] as const),
  );
}

const SESSION_TEXTS = [...TEXTS].flatMap(([type, places]) =>
  type.startsWith('session.') && places ? [[type, withTexts(places) as object] as const] : [],
);

test.each(SESSION_TEXTS)('every text of %s can be withheld by its name', (_, data) => {
  for (const [name, value] of Object.entries(data)) {
    const field = name === 'settings' ? 'response_format' : name;
    // Without a name of their own, they are withheld with any other text.
    const selector = parseSelectors(field) ? field : 'title';
    const shown = JSON.stringify(redacted(selector, { [name]: value }));
    expect(shown).toContain('sha256');
    expect(shown).not.toContain('secret');
  }
});

test('labels are withheld alone, and refused in plain', () => {
  const data = { title: text('t'), labels: [{ name: text('n'), value: text('v') }] };
  expect(redacted('labels', data)).toEqual({
    title: text('t'),
    labels: [{ name: WITHHELD, value: WITHHELD }],
  });
  expect(redacted('title', data)).toEqual({ ...data, title: WITHHELD });
  expect(() => redacted('labels', { labels: [{ name: 'team', value: 'a' }] })).toThrow(
    'The labels of the event at revision 4',
  );
});
