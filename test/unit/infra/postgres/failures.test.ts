import { expect, test } from '@jest/globals';
import { DatabaseError } from 'pg';
import { withDatabaseErrors } from '../../../../infra/postgres/failures.ts';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';

const ofServer = (code: string): Error =>
  Object.assign(new DatabaseError('refused', 0, 'error'), { code });
const withCode = (code: string): Error => Object.assign(new Error('failed'), { code });

const FAILURES: [what: string, error: Error, isAway: boolean][] = [
  ['a refused connection', withCode('ECONNREFUSED'), true],
  ['refused connections to all addresses', new AggregateError([], 'failed'), true],
  ['a connection that ended', new Error('Connection terminated unexpectedly'), true],
  ['a server that stops', ofServer('57P01'), true],
  ['a server that starts', ofServer('57P03'), true],
  ['too many connections', ofServer('53300'), true],
  ['a lost connection', ofServer('08006'), true],
  ['a column that does not exist', ofServer('42703'), false],
  ['a missing privilege', ofServer('42501'), false],
  ['a lock that others hold', ofServer('55P03'), false],
  ['a cancelled statement', ofServer('57014'), false],
  ['an answer that can’t be read', new RangeError('Invalid array length'), false],
  ['an answer that is too long', withCode('ERR_STRING_TOO_LONG'), false],
];

test.each(FAILURES)('tells a server that is away from one that refuses: %s', async (...given) => {
  const [, error, isAway] = given;
  const failure = withDatabaseErrors(() => Promise.reject(error));
  await expect(failure).rejects.toMatchObject({ code: 'store_unavailable', isAway, cause: error });
});

test.each([
  [
    'a read-only server',
    ofServer('25006'),
    /^PostgreSQL refuses a statement \(SQLSTATE 25006\)\.$/,
  ],
  ['a cancelled statement', ofServer('57014'), /does not answer/],
  ['too many connections', ofServer('53300'), /can't be reached/],
  ['a refused connection', withCode('ECONNREFUSED'), /can't be reached/],
])('names the trouble with %s', async (_, error, message) => {
  const failure = withDatabaseErrors(() => Promise.reject(error));
  await expect(failure).rejects.toThrow(message);
});

test('leaves errors alone that are named already', async () => {
  const error = new TurnlogError('proof_invalid', 'A table is damaged.');
  await expect(withDatabaseErrors(() => Promise.reject(error))).rejects.toBe(error);
});
