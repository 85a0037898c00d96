import { expect, jest, test } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import { openReplayStream } from '../../../../../services/followers/replays/replayStream.ts';
import { READ_PAGE_BYTES } from '../../../../../shared/eventlog/reading/readMemory.ts';
import { memoryFor } from '../../../../support/builders/memory.ts';

test('a replay is opened within reserved memory, for which it waits until it is aborted', async () => {
  const memory = memoryFor('sessionReads', 4 * READ_PAGE_BYTES);
  const readStream = jest.fn(() => Promise.reject(new Error('read')));
  const context = { memory, store: { readStream } } as unknown as Parameters<
    typeof openReplayStream
  >[0];
  const open = (signal: AbortSignal) => openReplayStream(context, 'replay_1', signal);
  const others = { account_id: 'other', purpose: 'sessionReads' } as const;
  const permit = memory.forceReserve({ ...others, bytes: 4 * READ_PAGE_BYTES });
  const stop = new AbortController();
  const stopped = open(stop.signal);
  const opened = open(new AbortController().signal);
  await turn();
  expect(readStream).not.toHaveBeenCalled();
  stop.abort(new Error('stopped'));
  await expect(stopped).rejects.toThrow('stopped');
  permit.release();
  await expect(opened).rejects.toThrow('read');
  expect(memory.usage('sessionReads').used).toBe(0);
});
