import { expect, jest, test } from '@jest/globals';
import { chainEvents, NO_STREAM } from '../../../../shared/eventlog/append.ts';
import { createDamagedStreams } from '../../../../shared/eventlog/reading/damagedStreams.ts';
import { replayStream } from '../../../../shared/eventlog/streams.ts';
import type { ReplayRow } from '../../../../shared/readModels/tables.ts';
import { followReplay } from '../../../../shared/replays/followReplay.ts';
import { typeIds } from '../../../../infra/ids/typeIds.ts';
import { AUTHORSHIP } from '../../../support/builders/authorship.ts';
import { replayStarted } from '../../../support/builders/events.ts';
import { skipPauses } from '../../../support/fakes/jumpingClock.ts';

skipPauses();

const { account_id } = AUTHORSHIP;
const replay_id = typeIds.typeId('replay');
const stream = replayStream(replay_id);

/** Follows a replay of the account by the log, whose row is different at each poll. */
async function follow(rows: readonly Partial<ReplayRow>[]) {
  const started = { id: typeIds.uuid(), ...replayStarted() };
  const { encoded } = chainEvents(stream, NO_STREAM, [started], AUTHORSHIP);
  const readStream = jest.fn(async () => [
    { ...encoded[0]!, stream, revision: 0, position: '0000000000000001' },
  ]);
  const polls = rows.values();
  const findReplay = async () =>
    ({ replay_id, account_id, revision: 0, ...polls.next().value }) as ReplayRow;
  const source = {
    store: { readStream } as never,
    readModels: { findReplay },
    damaged: createDamagedStreams(() => undefined),
  };
  const { signal } = new AbortController();
  const updates: string[] = [];
  for await (const { type } of followReplay(source, { account_id, replay_id, after: 0 }, signal))
    updates.push(type);
  return { updates, reads: readStream.mock.calls.length };
}

const RUNNING: Partial<ReplayRow> = { status: 'running' };

test('looks up the owner in the log once, not at every poll', async () => {
  expect(await follow([RUNNING, RUNNING, RUNNING, { status: 'completed' }])).toEqual({
    updates: ['ended'],
    reads: 1,
  });
});

test('ends when the replay is erased', async () => {
  await expect(follow([RUNNING, { status: 'erased' }])).rejects.toMatchObject({
    code: 'replay_not_found',
  });
});
