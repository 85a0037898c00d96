import { expect, jest, test } from '@jest/globals';
import { TurnlogError } from '../../../../../shared/lib/errors/turnlogError.ts';
import { createDamagedStreams } from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import {
  toDamageError,
  reportDamage,
} from '../../../../../shared/eventlog/reading/reportDamage.ts';
import { readPage } from '../../../../../shared/eventlog/reading/readWhole.ts';
import { memoryKeys } from '../../../../support/fakes/memoryKeys.ts';

const STREAM = 'session-1';

function brokenSource() {
  const damaged = createDamagedStreams(() => undefined);
  const readStream = () => Promise.reject(new TurnlogError('stream_damaged', 'It was deleted.'));
  return {
    store: { readStream, keys: memoryKeys().keys },
    damaged,
    record: jest.spyOn(damaged, 'record'),
  };
}

test('damage that only the store tells of is noted once, and answered with the place the client named', async () => {
  const source = brokenSource();
  const error = await readPage(source, STREAM, { direction: 'forwards', limit: 1 }).catch(
    (thrown: unknown) => thrown,
  );
  const answered = await toDamageError(source, STREAM, error as TurnlogError, '/session_id');
  expect(answered.details).toMatchObject({ stream: { path: '/session_id' } });
  expect(source.record).toHaveBeenCalledTimes(1);
});

test('damage that was found here is noted once', async () => {
  const source = brokenSource();
  const error = await reportDamage(source, STREAM, { reason: 'x', revision: 0 });
  await toDamageError(source, STREAM, error, '/session_id');
  expect(source.record).toHaveBeenCalledTimes(1);
});
