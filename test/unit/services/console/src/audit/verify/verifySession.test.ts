/** Sessions as a service shows them: page by page, while its log grows, and with whole proofs. */
import { describe, expect, test } from '@jest/globals';
import type { Bytes } from '../../../../../../../services/console/src/audit/verify/bytes.ts';
import type { Mismatch } from '../../../../../../../services/console/src/audit/verify/mismatch.ts';
import {
  readCheckpoint,
  readKeys,
  type Checkpoint,
} from '../../../../../../../services/console/src/audit/verify/notes.ts';
import {
  readLeafEvent,
  tileHashes,
} from '../../../../../../../services/console/src/audit/verify/tiles.ts';
import {
  checkpointVerifier,
  verifySession,
  type EventProof,
} from '../../../../../../../services/console/src/audit/verify/verifySession.ts';
import {
  shownEventHash,
  type ShownEvent,
} from '../../../../../../../shared/transparency/proof/shownTexts.ts';
import { formatCheckpoint } from '../../../../../../../shared/transparency/tlog/checkpoint.ts';
import { leafEntry } from '../../../../../../../shared/transparency/tlog/leaf.ts';
import { signNote } from '../../../../../../../shared/transparency/tlog/note.ts';
import { formatVkey } from '../../../../../../../shared/transparency/tlog/noteKeys.ts';
import { inclusionProof, rootAt } from '../../../../../../../shared/transparency/tlog/proofs.ts';
import { openRightEdge } from '../../../../../../../shared/transparency/tlog/rightEdge.ts';
import {
  leavesOf,
  SESSION,
  shownSession,
  signer,
} from '../../../../../../support/builders/bundles.ts';
import { memoryTiles } from '../../../../../../support/fakes/memoryTiles.ts';

const KEYS = await readKeys(formatVkey(signer.key));
const session = shownSession();
const LEAVES = leavesOf(session.length);
const SIZE = 600;
const bytes = (hash: Uint8Array): Bytes => new Uint8Array(hash);

/** A log that has the session among other events. */
async function makeLog(other = 'a') {
  const tiles = memoryTiles();
  const edge = await openRightEdge(tiles, 0);
  for (let index = 0; index < SIZE; index += 1) {
    const event = session[LEAVES.indexOf(index)];
    edge.append(leafEntry(event?.metadata.hash ?? other.repeat(64), index));
  }
  tiles.write(edge.takeFiles());
  const fetchTile = async (path: string): Promise<Bytes | undefined> => {
    const tile = await tiles.read(path);
    return tile && bytes(tile);
  };
  return {
    readTree: (size: number) => tileHashes(size, fetchTile),
    readLeaf: (leaf: number, size: number) => readLeafEvent(leaf, size, fetchTile),
    async checkpoint(size: number): Promise<Checkpoint> {
      const root = await rootAt(tiles, size);
      const text = formatCheckpoint({ origin: signer.key.name, size, root });
      return readCheckpoint(signNote(text, [signer]));
    },
    prove: async (leaf: number, size: number) =>
      (await inclusionProof(tiles, leaf, size)).map(bytes),
  };
}
const log = await makeLog();

/** What the service shows: the events, those from the sixth on under a later checkpoint. */
async function proofs(events: readonly ShownEvent[] = session): Promise<EventProof[]> {
  const [first, second] = [await log.checkpoint(302), await log.checkpoint(SIZE)];
  return Promise.all(
    events.map(async (event, at) => {
      const checkpoint = at < 5 ? first : second;
      const leaf = LEAVES[at]!;
      return { event, leaf, hashes: await log.prove(leaf, checkpoint.size), checkpoint };
    }),
  );
}

interface Options {
  pinned?: Checkpoint;
  signal?: AbortSignal;
  total?: number;
  onProgress?: (events: number, total: number) => void;
}

function verify(shown: readonly EventProof[], options: Options = {}) {
  const trust = { keys: KEYS, pinned: options.pinned };
  const source = {
    session_id: SESSION,
    events: (async function* () {
      yield* shown;
    })(),
    total: () => options.total ?? shown.length,
    isWhole: true,
  };
  return verifySession(source, {
    trust,
    checkpoints: checkpointVerifier(trust, { readTree: log.readTree }),
    readLeaf: log.readLeaf,
    signal: options.signal ?? new AbortController().signal,
    onProgress: options.onProgress ?? (() => undefined),
  });
}

const mismatchOf = (...request: Parameters<typeof verify>): Promise<Mismatch> =>
  verify(...request).then(
    () => {
      throw new Error('it was verified');
    },
    (error: unknown) => error as Mismatch,
  );

test('verifies pages under checkpoints of a growing log, against an older pinned one', async () => {
  const progress: number[] = [];
  const verified = await verify(await proofs(), {
    pinned: await log.checkpoint(295),
    onProgress: (events) => progress.push(events),
  });
  expect(verified).toMatchObject({
    chain: { events: 10, texts: { redacted: 0, erased: 0 } },
    checkpoint: { size: SIZE },
    lastLeaf: 300,
    pinned: { events: 7, checkpoint: { size: 295 } },
  });
  expect(progress).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
});

test('verifies a session under checkpoints that are older than the pinned one', async () => {
  const { pinned } = await verify(await proofs(), { pinned: await log.checkpoint(SIZE) });
  expect(pinned).toMatchObject({ events: 10 });
});

describe('names what a lying service does:', () => {
  test('an event that was changed together with the chain after it', async () => {
    let hash = '0'.repeat(64);
    const forged = session.map((event, at) => {
      const data = at === 6 ? { ...(event.data as object), is_error: true } : event.data;
      const changed = { ...event, data, metadata: { ...event.metadata, prev_hash: hash } };
      hash = shownEventHash(changed as ShownEvent);
      return { ...changed, metadata: { ...changed.metadata, hash } } as ShownEvent;
    });
    const { message, details } = await mismatchOf(await proofs(forged));
    expect(message).toContain('The event at revision 6 is not in the log');
    expect(details).toMatchObject({
      event: { revision: 6, type: session[6]!.type, time: '2026-01-01T00:00:00.000Z' },
      expected: `event hash ${session[6]!.metadata.hash}`,
      actual: `event hash ${forged[6]!.metadata.hash}`,
    });
  });

  test('the leaf and the proof of another event', async () => {
    const shown = await proofs();
    const leaf = LEAVES[3]! + 1;
    shown[3] = { ...shown[3]!, leaf, hashes: await log.prove(leaf, 302) };
    const { message, details } = await mismatchOf(shown);
    expect(message).toContain('The event at revision 3 is not in the log');
    expect(details).toMatchObject({
      expected: `event hash ${'a'.repeat(64)}`,
      actual: `event hash ${session[3]!.metadata.hash}`,
    });
  });

  test('an event without its place in the order of the log', async () => {
    const shown = await proofs();
    shown[4] = { ...shown[4]!, leaf: LEAVES[3]! };
    const { message } = await mismatchOf(shown);
    expect(message).toBe(
      'The event at revision 4 is not in the log: its leaf is not after that of the event before it.',
    );
  });

  test('events that are cut off at the end', async () => {
    const { message } = await mismatchOf((await proofs()).slice(0, -1), { total: 10 });
    expect(message).toBe('There are 9 events, and there should be 10.');
  });

  test('a checkpoint of another history, on a later page and against the pinned one', async () => {
    const other = await (await makeLog('b')).checkpoint(SIZE);
    const shown = await proofs();
    shown[7] = { ...shown[7]!, checkpoint: other };
    expect((await mismatchOf(shown)).message).toBe(
      'The log of 600 events does not begin with the 600 events of the other checkpoint.',
    );
    const older = await (await makeLog('b')).checkpoint(200);
    expect((await mismatchOf(await proofs(), { pinned: older })).message).toBe(
      'The log of 302 events does not begin with the 200 events of the pinned checkpoint.',
    );
  });

  test('a log that is shorter than the pinned checkpoint, or has another name', async () => {
    const pinned = await log.checkpoint(SIZE);
    const checkpoints = checkpointVerifier({ keys: KEYS, pinned }, { readTree: log.readTree });
    const shorter = await log.checkpoint(302);
    expect(() => checkpoints.requireNotShorter(shorter)).toThrow(
      'The log has 302 events, and the pinned checkpoint is of 600.',
    );
    const renamed = readCheckpoint(pinned.note.replace(signer.key.name, 'log.example/other'));
    await expect(checkpoints.accept(renamed)).rejects.toThrow('of another log than the pinned one');
  });
});

test('stops where it is told to, and reads no further event', async () => {
  const controller = new AbortController();
  const progress: number[] = [];
  const stopped = verify(await proofs(), {
    signal: controller.signal,
    onProgress: (events) => {
      progress.push(events);
      if (events === 3) controller.abort(new Error('stopped'));
    },
  });
  await expect(stopped).rejects.toThrow('stopped');
  expect(progress).toEqual([1, 2, 3]);
});
