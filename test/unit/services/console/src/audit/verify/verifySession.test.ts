/** Sessions as a service shows them: page by page, while its log grows, and with whole proofs. */
import { describe, expect, test } from '@jest/globals';
import type { Bytes } from '../../../../../../../services/console/src/audit/verify/bytes.ts';
import type { Mismatch } from '../../../../../../../services/console/src/audit/verify/mismatch.ts';
import {
  readCheckpoint,
  readKeys,
  type Checkpoint,
} from '../../../../../../../services/console/src/audit/verify/notes.ts';
import { tileHashes } from '../../../../../../../services/console/src/audit/verify/merkle.ts';
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
import { vectors } from '../../../../../../support/builders/vectors.ts';
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

/** The responses of the service: the events, those from the sixth on under a later checkpoint. */
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
  return verifySession({
    session_id: SESSION,
    proofs: (async function* () {
      yield* shown;
    })(),
    total: () => options.total ?? shown.length,
    trust,
    accept: checkpointVerifier(trust, log.readTree),
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
    pinnedEvents: 7,
  });
  expect(progress).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
});

test('counts texts that the service withholds, and verifies their commitments', async () => {
  const withheld = session.map((event) => ({
    ...event,
    data: JSON.parse(JSON.stringify(event.data), (_name, value) =>
      value?.sha256 === undefined ? value : { sha256: value.sha256 },
    ) as object,
  }));
  const { chain } = await verify(await proofs(withheld));
  expect(chain.texts.disclosed).toBe(0);
  expect(chain.texts.redacted).toBeGreaterThan(9);
});

describe('names the first event that does not match:', () => {
  const changed = (at: number, change: (event: any) => void) => async () => {
    const events = structuredClone(session) as any[];
    change(events[at]);
    return proofs(events);
  };
  const forgeries: [string, number, string, () => Promise<EventProof[]>][] = [
    [
      'a changed text',
      3,
      'has another output',
      changed(3, ({ data }) => (data.output.text = 'No.')),
    ],
    ['a changed salt', 3, 'has another output', changed(3, ({ data }) => (data.output.salt = 'x'))],
    [
      'a changed time',
      2,
      'does not match its hash',
      changed(2, ({ metadata }) => (metadata.recorded_at = '2020-01-01T00:00:00.000Z')),
    ],
    ['a dropped event', 4, 'has another revision', async () => (await proofs()).toSpliced(4, 1)],
    [
      'swapped events',
      5,
      'has another revision',
      async () => {
        const shown = await proofs();
        return shown.with(5, shown[6]!).with(6, shown[5]!);
      },
    ],
    [
      'another session',
      1,
      'belongs to another',
      changed(1, (event) => (event.stream = 'session-2')),
    ],
    [
      'another chain',
      1,
      'does not continue',
      changed(1, ({ metadata }) => (metadata.prev_hash = '')),
    ],
    ['a member more', 1, 'is no event', changed(1, (event) => (event.more = 1))],
    ['a plain text', 2, 'without a commitment', changed(2, ({ data }) => (data.result = 'plain'))],
    ['a lone surrogate', 2, 'no canonical form', changed(2, ({ data }) => (data.x = '\ud800'))],
  ];
  test.each(forgeries)('%s', async (_name, revision, what, forge) => {
    const { message, details } = await mismatchOf(await forge());
    expect(message).toContain(`The event at revision ${revision} `);
    expect(message).toContain(what);
    expect(details.event).toMatchObject({ revision, type: expect.stringContaining('session.') });
    expect(details.meaning).not.toBe('');
    if (details.expected !== undefined) expect(details.actual).not.toBe(details.expected);
  });
});

describe('names what a lying service does:', () => {
  test('an event that was changed together with the chain after it', async () => {
    let hash = '0'.repeat(64);
    const forged = session.map((event, at) => {
      const data = at === 6 ? { ...(event.data as object), is_error: true } : event.data;
      const changed = { ...event, data, metadata: { ...event.metadata, prev_hash: hash } };
      hash = shownEventHash(changed);
      return { ...changed, metadata: { ...changed.metadata, hash } };
    });
    const { message, details } = await mismatchOf(await proofs(forged));
    expect(message).toContain('The event at revision 6 is not in the log');
    expect(details).toMatchObject({
      event: { revision: 6, type: session[6]!.type, time: '2026-01-01T00:00:00.000Z' },
      expected: expect.stringMatching(/^root /),
      actual: expect.stringMatching(/^root /),
    });
  });

  test('the leaf and the proof of another event', async () => {
    const shown = await proofs();
    const leaf = LEAVES[3]! + 1;
    shown[3] = { ...shown[3]!, leaf, hashes: await log.prove(leaf, 302) };
    const { message, details } = await mismatchOf(shown);
    expect(message).toContain('The event at revision 3 is not in the log');
    expect(details.actual).not.toBe(details.expected);
  });

  test('an event without its place in the order of the log', async () => {
    const shown = await proofs();
    shown[4] = { ...shown[4]!, leaf: LEAVES[3]! };
    const { message } = await mismatchOf(shown);
    expect(message).toBe('The event at revision 4 is not in the log.');
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
      'The log of 600 events does not begin with the 600 events of the earlier checkpoint.',
    );
    const older = await (await makeLog('b')).checkpoint(200);
    expect((await mismatchOf(await proofs(), { pinned: older })).message).toBe(
      'The log of 302 events does not begin with the 200 events of the pinned checkpoint.',
    );
  });

  test('a log that is shorter than the pinned checkpoint, or has another name', async () => {
    const pinned = await log.checkpoint(SIZE);
    const accept = checkpointVerifier({ keys: KEYS, pinned }, log.readTree);
    await expect(accept(await log.checkpoint(302))).rejects.toThrow(
      'The log has 302 events, and a checkpoint before it had 600.',
    );
    const renamed = readCheckpoint(pinned.note.replace(signer.key.name, 'log.example/other'));
    await expect(accept(renamed)).rejects.toThrow('of another log than the pinned one');
  });

  test('a checkpoint with another root, or of a log whose key is not trusted', async () => {
    const { note, root } = await log.checkpoint(SIZE);
    const other = Buffer.alloc(32).toString('base64');
    const forged = readCheckpoint(note.replace(Buffer.from(root).toString('base64'), other));
    await expect(checkpointVerifier({ keys: KEYS }, log.readTree)(forged)).rejects.toThrow(
      'is not signed by',
    );
    const keys = await readKeys(vectors.Keys[0]!.Vkey);
    const accept = checkpointVerifier({ keys }, log.readTree);
    await expect(accept(readCheckpoint(note))).rejects.toThrow('whose key you do not trust');
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
