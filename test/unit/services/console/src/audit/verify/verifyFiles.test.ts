/** Bundles and checkpoints as somebody would forge them: the first event that does not fit is named. */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import type { Mismatch } from '../../../../../../../services/console/src/audit/verify/mismatch.ts';
import {
  readCheckpoint,
  readKeys,
} from '../../../../../../../services/console/src/audit/verify/notes.ts';
import {
  verifyBundleFile,
  verifyReceiptOf,
} from '../../../../../../../services/console/src/audit/verify/verifyFiles.ts';
import { readTar } from '../../../../../../../infra/tar/readTar.ts';
import { canonicalJson } from '../../../../../../../shared/eventlog/canonicalJson.ts';
import type { ShownEvent } from '../../../../../../../shared/transparency/proof/shownTexts.ts';
import { shownEventHash } from '../../../../../../../shared/transparency/proof/shownTexts.ts';
import { verifyBundle } from '../../../../../../../shared/transparency/proof/verifyBundle.ts';
import { verifyReceipt } from '../../../../../../../shared/transparency/receipts/verifyReceipt.ts';
import { formatCheckpoint } from '../../../../../../../shared/transparency/tlog/checkpoint.ts';
import { leafEntry } from '../../../../../../../shared/transparency/tlog/leaf.ts';
import { leafHash, nodeHash } from '../../../../../../../shared/transparency/tlog/merkle.ts';
import { signNote } from '../../../../../../../shared/transparency/tlog/note.ts';
import { formatVkey } from '../../../../../../../shared/transparency/tlog/noteKeys.ts';
import { formatProof } from '../../../../../../../shared/transparency/tlog/proofFile.ts';
import {
  makeBundle,
  SESSION,
  shownSession,
  signer,
  textsOf,
  witness,
  writeTexts,
  type BundleTexts,
} from '../../../../../../support/builders/bundles.ts';
import { vectors } from '../../../../../../support/builders/vectors.ts';
import { temporaryFolder } from '../../../../../../support/stores/sqlite/sqliteEventStore.ts';

const VKEY = formatVkey(signer.key);
const KEYS = await readKeys(`${VKEY}\n${formatVkey(witness.key)}`);

let folder: string;
let file: string;
beforeAll(async () => {
  folder = await temporaryFolder();
  file = join(folder, 'bundle.tar');
});
afterAll(() => rm(folder, { recursive: true }));

const textsOfBundle = async (...made: Parameters<typeof makeBundle>): Promise<BundleTexts> =>
  textsOf(await makeBundle(...made));

async function verify(
  texts: BundleTexts,
  { pinned, keys = KEYS }: { pinned?: string; keys?: typeof KEYS } = {},
) {
  await writeTexts(file, texts);
  return verifyBundleFile(new Blob([new Uint8Array(await readFile(file))]), {
    trust: { keys, pinned: pinned === undefined ? undefined : readCheckpoint(pinned) },
    readTree: () => () => Promise.reject(new Error('no log is there')),
    signal: new AbortController().signal,
    onProgress: () => undefined,
  });
}

const mismatchOf = async (...request: Parameters<typeof verify>): Promise<Mismatch> =>
  verify(...request).then(
    () => {
      throw new Error('it was verified');
    },
    (error: unknown) => error as Mismatch,
  );

/** Changes the lines of a bundle, which are events with their proofs. */
function withLines(texts: BundleTexts, change: (lines: any[]) => any[]): BundleTexts {
  const lines = texts['events.jsonl']!.trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const changed = change(lines);
  return {
    ...texts,
    manifest: `${canonicalJson({ events: changed.length, session_id: SESSION, turnlog_bundle: 2 })}\n`,
    'events.jsonl': changed.map((line) => `${canonicalJson(line)}\n`).join(''),
  };
}

/** Gives the events from a revision on the hashes that fit them, as somebody with the store could. */
function rechained(lines: any[]): any[] {
  let hash = '0'.repeat(64);
  return lines.map((line, revision) => {
    const event = {
      ...line.event,
      revision,
      metadata: { ...line.event.metadata, prev_hash: hash },
    };
    hash = shownEventHash(event as ShownEvent);
    return { ...line, event: { ...event, metadata: { ...event.metadata, hash } } };
  });
}

const session = shownSession();

test('says what a bundle proves: its events, texts, leaf, signature and witnesses', async () => {
  const verified = await verify(await textsOfBundle(session, '1.input'));
  expect(verified).toMatchObject({
    session_id: SESSION,
    chain: {
      events: 10,
      hash: session.at(-1)!.metadata.hash,
      firstTime: '2026-01-01T00:00:00.000Z',
    },
    lastLeaf: 300,
    checkpoint: { size: 312 },
    signedBy: { key: { vkey: VKEY }, isTrusted: true },
    cosignatures: [{ name: 'witness.example/w1', time: '2026-01-01T00:00:00.000Z' }],
    pinned: undefined,
  });
  expect(verified.chain.texts.redacted).toBeGreaterThan(0);
  expect(verified.chain.texts.disclosed).toBeGreaterThan(0);
});

test('with no trusted key it uses the one of the bundle, and says so', async () => {
  const { signedBy } = await verify(await textsOfBundle(session), { keys: [] });
  expect(signedBy).toMatchObject({ key: { vkey: VKEY }, isTrusted: false });
});

describe('names the first event that does not match:', () => {
  const forgeries: [string, number, string, (lines: any[]) => any[]][] = [
    [
      'a changed text',
      3,
      'has another output',
      (lines) => {
        lines[3].event.data.output.text = 'Another answer.';
        return lines;
      },
    ],
    [
      'a changed time',
      2,
      'does not match its hash',
      (lines) => {
        lines[2].event.metadata.recorded_at = '2020-01-01T00:00:00.000Z';
        return lines;
      },
    ],
    ['a dropped event', 4, 'has another revision', (lines) => lines.toSpliced(4, 1)],
    [
      'swapped events',
      5,
      'has another revision',
      (lines) => [...lines.slice(0, 5), lines[6], lines[5], ...lines.slice(7)],
    ],
    [
      'a dropped event, the chain rewritten',
      4,
      'is not in the log',
      (lines) => rechained(lines.toSpliced(4, 1)),
    ],
    [
      'a changed event, the chain rewritten',
      2,
      'is not in the log',
      (lines) => {
        lines[2].event.data.is_error = true;
        return rechained(lines);
      },
    ],
    [
      'a leaf of another event',
      1,
      'is not in the log',
      (lines) => {
        lines[1].leaf -= 1;
        return lines;
      },
    ],
    [
      'an event of another session',
      1,
      'belongs to another session',
      (lines) => {
        lines[1].event.stream = 'session-session_01kahz1c3sf6w9m3v5q7x9z1zz';
        return lines;
      },
    ],
  ];
  test.each(forgeries)('%s', async (_name, revision, what, change) => {
    const error = await mismatchOf(withLines(await textsOfBundle(session), change));
    expect(error.message).toContain(`The event at revision ${revision} ${what}`);
    expect(error.details.event).toMatchObject({
      revision,
      type: expect.stringContaining('session.'),
    });
    expect(error.details.actual).not.toBe(error.details.expected);
    expect(error.details.meaning).not.toBe('');
  });
});

test('refuses a root, a signature or a key that is not that of the log', async () => {
  const texts = await textsOfBundle(session);
  const checkpoint = texts['checkpoint']!;
  const replaced = (from: string, to: string): BundleTexts => ({
    ...texts,
    checkpoint: checkpoint.replace(from, to),
    'session.tlog-proof': texts['session.tlog-proof']!.replace(from, to),
  });
  const root = checkpoint.split('\n')[2]!;
  expect((await mismatchOf(replaced(root, Buffer.alloc(32).toString('base64')))).message).toContain(
    'The signature of',
  );
  const [, signature = ''] = /— turnlog\/\S+ (\S+)/.exec(checkpoint) ?? [];
  const bytes = Buffer.from(signature, 'base64');
  bytes[20]! ^= 1;
  expect((await mismatchOf(replaced(signature, bytes.toString('base64')))).message).toContain(
    'is wrong',
  );
  const other = await readKeys(vectors.Keys[0]!.Vkey);
  expect((await mismatchOf(texts, { keys: other })).message).toBe(
    'The checkpoint is of a log whose key you do not trust.',
  );
});

describe('a pinned checkpoint', () => {
  test('that the bundle extends counts the events that are under it', async () => {
    const { checkpoint: pinned } = await textsOfBundle(session);
    const verified = await verify(await textsOfBundle(session), { pinned: pinned! });
    expect(verified.pinned).toMatchObject({ checkpoint: { size: 312 }, events: 10 });
  });

  test('of an older tree is found in the bundle’s consistency proof', async () => {
    const texts = await textsOfBundle(session, '', 295);
    const [size, root] = texts['consistency']!.split('\n');
    const text = `${signer.key.name}\n${size}\n${root}\n`;
    const verified = await verify(texts, { pinned: signNote(text, [signer]) });
    // The events have every other leaf up to 300.
    expect(verified.pinned).toMatchObject({ checkpoint: { size: 295 }, events: 7 });
    const forged = signNote(text.replace(root!, Buffer.alloc(32, 9).toString('base64')), [signer]);
    await expect(verify(texts, { pinned: forged })).rejects.toThrow('no log is there');
  });

  test('of the same size with another root shows two histories', async () => {
    const first = await textsOfBundle(session);
    const other = await textsOfBundle(shownSession());
    const error = await mismatchOf(other, { pinned: first['checkpoint']! });
    expect(error.message).toBe(
      'The log of 312 events does not begin with the 312 events of the pinned checkpoint.',
    );
    expect(error.details.meaning).toContain('changed, dropped or added after it was signed');
  });
});

test('of any changed byte of a bundle it says the same as the service’s own verifier', async () => {
  const texts = await textsOfBundle(session, '', 120);
  const names = Object.keys(texts);
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...names),
      fc.nat(),
      fc.constantFrom(...'0aB"}\n '),
      async (name, at, char) => {
        const text = texts[name]!;
        const index = at % text.length;
        const changed = { ...texts, [name]: text.slice(0, index) + char + text.slice(index + 1) };
        await writeTexts(file, changed);
        const isAccepted = (verifying: Promise<unknown>) =>
          verifying.then(
            () => true,
            () => false,
          );
        const trusted = { vkey: VKEY, witnesses: [] };
        const byService = await isAccepted(verifyBundle(readTar(file), trusted, () => undefined));
        expect(await isAccepted(verify(changed))).toBe(byService);
      },
    ),
    { numRuns: 100 },
  );
});

describe('the receipt of an erasure', () => {
  const stream = `session-${SESSION}`;

  function makeReceipt() {
    const bare = {
      id: '01a219ba-7750-7386-8085-047045a3dd4a',
      stream,
      revision: 5,
      type: 'session.erased.v1',
      data: { reason: 'request', note: 'Ticket 7' },
      metadata: { ...session[0]!.metadata, prev_hash: 'c'.repeat(64) },
    };
    const hash = shownEventHash(bare as unknown as ShownEvent);
    const leaf = leafHash(leafEntry(hash, 0));
    const sibling = Buffer.alloc(32, 7);
    const text = formatCheckpoint({
      origin: signer.key.name,
      size: 2,
      root: nodeHash(leaf, sibling),
    });
    const checkpoint = signNote(text, [signer]);
    return {
      turnlog_receipt: 1,
      subject: { stream, kind: 'session', id: SESSION },
      events: 5,
      event: { ...bare, metadata: { ...bare.metadata, hash } },
      leaf: { hash, index: 0 },
      proof: formatProof({ index: 0, hashes: [sibling], checkpoint }),
    };
  }

  const check = (receipt: ReturnType<typeof makeReceipt>) =>
    verifyReceiptOf(receipt, {
      subjectId: SESSION,
      trust: { keys: KEYS },
      readTree: () => () => Promise.reject(new Error('no log is there')),
    });

  test('is verified with the key of the log', async () => {
    expect(await check(makeReceipt())).toMatchObject({
      checkpoint: { size: 2 },
      signedBy: { isTrusted: true },
      cosignatures: [{ name: 'witness.example/w1', time: undefined }],
    });
  });

  const changes: [string, string, (receipt: any) => void][] = [
    ['of another subject', 'names another subject', ({ subject }) => (subject.id = 'session_2')],
    [
      'of another type',
      'names another subject',
      ({ event }) => (event.type = 'session.described.v1'),
    ],
    ['with another count', 'names another subject', (receipt) => (receipt.events = 4)],
    ['with another note', 'does not match its hash', ({ event }) => (event.data.note = 'Ticket 8')],
    [
      'with another time',
      'does not match its hash',
      ({ event }) => (event.metadata.recorded_at = '2020-01-01'),
    ],
    ['of another leaf', 'is not in the log', ({ leaf }) => (leaf.index = 1)],
    ['with a member more', 'no receipt', (receipt) => (receipt.more = true)],
    [
      'under another checkpoint',
      'The signature of',
      (receipt) => (receipt.proof = receipt.proof.replace('\n2\n', '\n3\n')),
    ],
  ];
  test.each(changes)('%s is rejected, as by the service’s verifier', async (_name, why, change) => {
    const receipt = makeReceipt();
    change(receipt);
    await expect(check(receipt)).rejects.toThrow(why);
    const text = JSON.stringify(receipt);
    expect(() => verifyReceipt(text, { vkey: VKEY, witnesses: [] })).toThrow();
  });
});
