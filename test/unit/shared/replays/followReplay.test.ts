import { expect, jest, test } from '@jest/globals';
import { chainEvents, NO_STREAM } from '../../../../shared/eventlog/append.ts';
import { createDamagedStreams } from '../../../../shared/eventlog/reading/damagedStreams.ts';
import { READ_PAGE_BYTES } from '../../../../shared/eventlog/reading/readMemory.ts';
import { replayStream } from '../../../../shared/eventlog/streams.ts';
import type { ReadOptions } from '../../../../shared/ports/eventStore.ts';
import { followReplay } from '../../../../shared/replays/followReplay.ts';
import type { ReplayRow } from '../../../../shared/readModels/tables.ts';
import { typeIds } from '../../../../infra/ids/typeIds.ts';
import { AUTHORSHIP } from '../../../support/builders/authorship.ts';
import { replaySessionEnded, replayStarted } from '../../../support/builders/events.ts';
import { memoryFor } from '../../../support/builders/memory.ts';
import { skipPauses } from '../../../support/fakes/jumpingClock.ts';

skipPauses();

const { account_id } = AUTHORSHIP;
const replay_id = typeIds.typeId('replay');
const stream = replayStream(replay_id);

const events = [replayStarted(), replaySessionEnded()].map((event) => ({
  id: typeIds.uuid(),
  ...event,
}));
const stored = chainEvents(stream, NO_STREAM, events, AUTHORSHIP).encoded.map(
  (event, revision) => ({ ...event, stream, revision, position: `${revision}`.padStart(16, '0') }),
);

/** Follows a replay of the account by the log; the row is different at each poll. */
async function follow([first, ...rows]: readonly Partial<ReplayRow>[], after = -1) {
  const memory = memoryFor('sessionReads', 4 * READ_PAGE_BYTES);
  const pages = () => memory.usage('sessionReads').used / READ_PAGE_BYTES;
  const readStream = jest.fn(async (_: string, { from }: ReadOptions) => ({
    pages: pages(),
    found: stored.slice(Number(from)),
  }));
  const polls = rows.values();
  const rowOf = (row: Partial<ReplayRow> = {}) =>
    ({ replay_id, account_id, revision: 0, ...row }) as ReplayRow;
  const source = {
    store: {
      readStream: async (...read: Parameters<typeof readStream>) =>
        (await readStream(...read)).found,
    } as never,
    readModels: { findReplay: async () => rowOf(polls.next().value) },
    damaged: createDamagedStreams(() => undefined),
    memory,
  };
  const { signal } = new AbortController();
  const updates: [type: string, revision: number, pages: number][] = [];
  for await (const { type, revision } of followReplay(source, { row: rowOf(first), after }, signal))
    updates.push([type, revision, pages()]);
  const reads = await Promise.all(
    readStream.mock.calls.map(async ([, { from }], nth) => ({
      from,
      pages: ((await readStream.mock.results[nth]!.value) as { pages: number }).pages,
    })),
  );
  return { updates, reads };
}

const RUNNING: Partial<ReplayRow> = { status: 'running' };

test('reads the log only for new events, and never the first one', async () => {
  expect(await follow([RUNNING, RUNNING, RUNNING, { status: 'completed' }])).toEqual({
    updates: [
      ['progress', 0, 0],
      ['ended', 0, 0],
    ],
    reads: [],
  });
});

test('reserves the memory of a page while it reads it, not while its updates are sent', async () => {
  expect(await follow([RUNNING, { status: 'completed', revision: 1 }])).toEqual({
    updates: [
      ['progress', 0, 0],
      ['session_ended', 1, 0],
      ['ended', 1, 0],
    ],
    reads: [{ from: 1, pages: 1 }],
  });
});

test('ends when the replay is erased', async () => {
  await expect(follow([RUNNING, { status: 'erased' }])).rejects.toMatchObject({
    code: 'replay_not_found',
  });
});

test('followers of a replay share each of its polls', async () => {
  const running: ReplayRow = { ...RUNNING, replay_id, account_id, revision: 0 } as never;
  const findReplay = jest
    .fn(async (): Promise<ReplayRow> => ({ ...running, status: 'completed' }))
    .mockResolvedValueOnce(running);
  const source = { readModels: { findReplay } } as never;
  const { signal } = new AbortController();
  const followers = Array.from({ length: 100 }, async () => {
    const types: string[] = [];
    for await (const { type } of followReplay(source, { row: running, after: 0 }, signal))
      types.push(type);
    return types;
  });
  expect(new Set((await Promise.all(followers)).flat())).toEqual(new Set(['ended']));
  expect(findReplay).toHaveBeenCalledTimes(2);
});
