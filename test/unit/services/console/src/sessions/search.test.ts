import { describe, expect, test } from '@jest/globals';
import {
  parseListSearch,
  parseSessionSearch,
} from '../../../../../../services/console/src/sessions/search.ts';

describe('the address of the list', () => {
  test('has the filters of the API', () => {
    const filters = {
      q: 'refund',
      agent_id: 'agent_1',
      status: 'running',
      outcome: 'failed',
      label: ['customer:4711', 'tier:gold'],
      created_from: '2026-11-20T09:30:00.000Z',
      updated_to: '2026-11-21',
      replay_id: 'replay_1',
    };
    expect(parseListSearch(filters)).toEqual(filters);
  });

  test('may have a number for a word, and one label', () => {
    expect(parseListSearch({ q: 4711, label: 'customer:1' })).toEqual({
      q: '4711',
      label: ['customer:1'],
    });
  });

  test('omits what no filter has', () => {
    const search = { q: '', status: 'open', outcome: 1, label: [''], other: 'x' };
    expect(parseListSearch(search)).toEqual({});
  });
});

describe('the address of a session', () => {
  test.each([
    [{ turn: 12 }, { turn: 12 }],
    [
      { tab: 'timeline', turn: 3 },
      { tab: 'timeline', turn: 3 },
    ],
    [{ event: 17 }, { tab: 'events', event: 17 }],
    [{ event: 0 }, { tab: 'events', event: 0 }],
    [{ tab: 'events' }, { tab: 'events' }],
    [{ tab: 'transcript', turn: 0, event: -1 }, {}],
    [{ tab: 'other', turn: '1', event: 1.5 }, {}],
  ])('of %j shows %j', (search, shown) => {
    expect(parseSessionSearch(search)).toEqual(shown);
  });
});
