import { recordedHash } from '../../../../../shared/eventlog/hashChain.ts';
import { expect, test } from '@jest/globals';
import { requireTreeMatchesLog } from '../../../../../services/followers/prover/requireTreeMatchesLog.ts';
import type { StoredEvent } from '../../../../../shared/ports/eventStore.ts';
import { formatCheckpoint } from '../../../../../shared/transparency/tlog/checkpoint.ts';
import { signNote } from '../../../../../shared/transparency/tlog/note.ts';
import { noteSigner } from '../../../../../shared/transparency/tlog/noteKeys.ts';
import { openRightEdge } from '../../../../../shared/transparency/tlog/rightEdge.ts';
import { signingKey } from '../../../../support/builders/prover.ts';
import { fixedLog } from '../../../../support/fakes/fixedLog.ts';
import { logOf, treeOfLog } from '../../../../support/fakes/memoryLog.ts';

const STORED = 600;
const EVENTS = logOf(STORED + 5);
const LOG_ID = EVENTS[0]!.id;
const ORIGIN = `turnlog/${LOG_ID}`;
const signer = noteSigner(ORIGIN, signingKey());

/** Compares a tree, with a leaf for each of the first events of a log, with the log. */
async function requireLeavesOf(
  log: readonly StoredEvent[],
  signedSize: number,
  leavesOf = log,
  lastAt = leavesOf[STORED - 1]!.position,
): Promise<void> {
  const { tiles, heads } = await treeOfLog(leavesOf.slice(0, STORED), [signedSize]);
  for (const start of tiles.bundles.values()) start.log_id = LOG_ID;
  const last = leavesOf[STORED - 1]!;
  const checkpoint = {
    log_id: LOG_ID,
    position: lastAt,
    event_id: last.id,
    event_hash: recordedHash(last),
  };
  const edge = await openRightEdge(tiles, STORED);
  const tree = {
    origin: ORIGIN,
    store: {
      ...tiles,
      beforeBundle: async (bundle: number) => tiles.bundles.get(bundle),
      readCheckpoint: async () =>
        signNote(formatCheckpoint({ origin: ORIGIN, ...heads[0]! }), [signer]),
      state: async () => ({ size: STORED, checkpoint }),
    },
    signedSize: () => signedSize,
    storedSize: () => STORED,
    last: () => checkpoint,
    root: edge.root,
  };
  const identity = { root: LOG_ID, declarations: [] };
  const { signal } = new AbortController();
  await requireTreeMatchesLog({ log: fixedLog(log, 64), signal }, tree, identity);
}

/** The log with an event of another program, which has no hash. */
const withoutHash = (at: number): StoredEvent[] =>
  EVENTS.with(at, { ...EVENTS[at]!, metadata: '{}' });

test.each([100, 256, 300, 512, 599, 600])('%d signed leaves are continued', async (signed) => {
  await expect(requireLeavesOf(EVENTS, signed)).resolves.toBeUndefined();
});

test.each([256, 300, 511, 512, 599, 600])(
  '%d signed leaves are continued after an event of another program',
  async (signed) => {
    for (const at of [255, 511, signed - 1, 599])
      await expect(requireLeavesOf(withoutHash(at), signed)).resolves.toBeUndefined();
  },
);

test('leaves of other events are not continued', async () => {
  for (const at of [512, 560, 599])
    await expect(requireLeavesOf(withoutHash(at), 512, EVENTS)).rejects.toMatchObject({
      code: 'configuration_invalid',
      message: expect.stringContaining('the others are not those of the event log') as unknown,
    });
});

test('a log without the event of the last signed leaf has changed', async () => {
  await expect(requireLeavesOf(EVENTS.toSpliced(599, 1), 600, EVENTS)).rejects.toMatchObject({
    code: 'log_changed',
  });
});

test('a log whose last event was moved to the front is not continued', async () => {
  const { position } = EVENTS[550]!;
  const moved = EVENTS.with(550, { ...EVENTS[599]!, position }).toSpliced(599, 1);
  await expect(requireLeavesOf(moved, 600, EVENTS, position)).rejects.toMatchObject({
    code: 'configuration_invalid',
    message: expect.stringContaining('which the event log does not have there') as unknown,
  });
});
