import { expect, test } from '@jest/globals';
import { tileReaderOver } from '../../../../../infra/postgres/tiles/reader.ts';

const CHECKPOINT = { log_id: 'log', position: '0001', event_id: 'event', event_hash: 'hash' };
const text = JSON.stringify(CHECKPOINT);
const readerOf = (row: object | undefined) => tileReaderOver(async () => row as never);

const DAMAGED = [
  { size: 3, checkpoint: 'no JSON' },
  { size: 3, checkpoint: '{}' },
  { size: 3, checkpoint: null },
  { size: 0, checkpoint: text },
  { size: -1, checkpoint: text },
];

test.each(DAMAGED)('names the table of a state that can’t be read: %j', async (row) => {
  await expect(readerOf(row).state()).rejects.toMatchObject({
    code: 'proof_invalid',
    message: expect.stringContaining('turnlog.tlog_trees does not say how large the tree is'),
  });
});

test.each(['no JSON', 'null', '{}'])(
  'names the table of a bundle that begins at %s',
  async (before) => {
    await expect(readerOf({ before }).beforeBundle(3)).rejects.toMatchObject({
      code: 'proof_invalid',
      message: expect.stringContaining('turnlog.tlog_bundles does not say where bundle 3 begins'),
    });
  },
);

test('reads a state, the start of a bundle, and that there is neither', async () => {
  const row = { size: 3, checkpoint: text, before: text };
  expect(await readerOf(row).state()).toEqual({ size: 3, checkpoint: CHECKPOINT });
  expect(await readerOf(row).beforeBundle(3)).toEqual(CHECKPOINT);
  for (const none of [undefined, { size: 0, checkpoint: null }])
    expect(await readerOf(none).state()).toEqual({ size: 0, checkpoint: undefined });
  expect(await readerOf(undefined).beforeBundle(3)).toBeUndefined();
});
