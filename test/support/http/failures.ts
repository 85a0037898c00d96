import { expect } from '@jest/globals';
import { apiFeatures } from '../../../services/api/features.ts';
import type { ErrorCode } from '../../../shared/lib/errors/turnlogError.ts';
import type { Reply } from './service.ts';

const MEMBERS = ['code', 'details', 'error', 'request_id', 'retry', 'status', 'success'].concat(
  'session_id',
  'turn',
);

/** Expects the failure envelope, whole, with the status of its code, and returns its body. */
export function expectFailure({ status, headers, body }: Reply, code: ErrorCode): Reply['body'] {
  expect({ code: body.code, status }).toEqual({
    code,
    status: apiFeatures.errorResponses[code].status,
  });
  expect(body).toMatchObject({
    success: false,
    error: expect.stringMatching(/^[^\n]+$/),
    status,
    retry: expect.stringMatching(/^(same_key|new_key|never)$/),
    request_id: headers.get('x-request-id'),
  });
  expect(Object.keys(body).filter((member) => !MEMBERS.includes(member))).toEqual([]);
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
  for (const detail of Object.values(body.details ?? {}))
    expect(detail).toEqual({ message: expect.any(String), path: expect.any(String) });
  return body;
}

const DIFFERENT = ['date', 'ratelimit', 'x-request-id'];

/**
 * A whole answer as text but for what differs between any two: its request id, its date, and what
 * is left of the key's requests.
 */
export const comparable = ({ status, headers, body }: Reply): string =>
  JSON.stringify([
    status,
    [...headers].filter(([name]) => !DIFFERENT.includes(name)),
    { ...body, request_id: '' },
  ]);
