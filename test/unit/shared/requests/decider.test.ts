import { describe, expect, test } from '@jest/globals';
import { request } from '../../../../shared/requests/decider.ts';
import { replay, specification } from '../../../support/builders/deciderSpecification.ts';
import { requestBegun } from '../../../support/builders/events.ts';

const given = specification(request);
const begun = requestBegun({ reserved: { id: 'agent_7' } });
const begin = (changes: Partial<typeof begun.data> = {}) =>
  ({
    type: 'begin_request',
    begun: { ...begun.data, ...changes },
    content_hmac: 'ef'.repeat(32),
  }) as const;

describe('a request that may come again', () => {
  test('begins once, whatever later tries would reserve', () => {
    given().when(begin()).then(begun);
    given(begun)
      .when(begin({ reserved: { id: 'agent_8' } }))
      .then();
  });

  test('keeps what the first try reserved', () => {
    expect(replay(request, [begun])).toEqual({ status: 'begun', ...begun.data });
  });

  test('is the same as one that an earlier release recorded', () => {
    given(requestBegun({ body_hmac: 'ef'.repeat(32) }))
      .when(begin())
      .then();
  });

  test('is refused with another body', () => {
    given(begun)
      .when(begin({ body_hmac: 'cd'.repeat(32) }))
      .thenRejected('request_differs');
  });
});
