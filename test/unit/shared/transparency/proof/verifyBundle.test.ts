/** Bundles of somebody who has the log's key: both verifiers must say the same of each. */
import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readTar } from '../../../../../infra/tar/readTar.ts';
import { canonicalJson } from '../../../../../shared/eventlog/canonicalJson.ts';
import { GENESIS_HASH } from '../../../../../shared/eventlog/hashChain.ts';
import type { ShownEvent } from '../../../../../shared/transparency/proof/shownTexts.ts';
import { verifyBundle } from '../../../../../shared/transparency/proof/verifyBundle.ts';
import { formatCheckpoint } from '../../../../../shared/transparency/tlog/checkpoint.ts';
import { leafEntry } from '../../../../../shared/transparency/tlog/leaf.ts';
import { leafHash } from '../../../../../shared/transparency/tlog/merkle.ts';
import { signNote } from '../../../../../shared/transparency/tlog/note.ts';
import { formatProof } from '../../../../../shared/transparency/tlog/proofFile.ts';
import { formatVkey } from '../../../../../shared/transparency/tlog/noteKeys.ts';
import { root } from '../../../../support/docs/projectFiles.ts';
import { makeBundle, SESSION, signer, writeTexts } from '../../../../support/builders/bundles.ts';
import { orSkip } from '../../../../support/processes/recipes/installed.ts';
import { temporaryFolder } from '../../../../support/stores/sqlite/sqliteEventStore.ts';

const run = promisify(execFile);
const VKEY = formatVkey(signer.key);
const VERIFIER = join(root, 'examples/verify_bundle.py');

/** Says of each file whose name it reads whether the bundle fits: starting it for each takes longer. */
const PROGRAM = `
import importlib.util, sys
spec = importlib.util.spec_from_file_location("verifier", sys.argv[1])
verifier = importlib.util.module_from_spec(spec)
spec.loader.exec_module(verifier)
def fits(file):
    try:
        return bool(verifier.verify(file, sys.argv[2]))
    except Exception:
        return False
for line in sys.stdin:
    print("fits" if fits(line.rstrip("\\n")) else "does not fit", flush=True)
`;

function startPython() {
  const child = spawn('python3', ['-B', '-c', PROGRAM, VERIFIER, VKEY], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async fits(bundle: string): Promise<boolean> {
      child.stdin.write(`${bundle}\n`);
      const { value } = await answers.next();
      expect(['fits', 'does not fit']).toContain(value);
      return value === 'fits';
    },
    end: () => child.stdin.end(),
  };
}

let folder: string;
let file: string;
let python: ReturnType<typeof startPython> | undefined;
beforeAll(async () => {
  folder = await temporaryFolder();
  file = join(folder, 'bundle.tar');
  python = await orSkip(async () => {
    await run('python3', ['--version']);
    return startPython();
  }, 'Install Python 3.8 or later.');
});
afterAll(async () => {
  python?.end();
  await rm(folder, { recursive: true });
});

/** Whether the bundle fits in the eyes of the command, and of the program in Python. */
async function fits(): Promise<boolean[]> {
  const byCommand = await verifyBundle(
    readTar(file),
    { vkey: VKEY, witnesses: [] },
    () => undefined,
  ).then(
    () => true,
    (error: { code: string }) => {
      expect(error.code).toBe('proof_invalid');
      return false;
    },
  );
  return python ? [byCommand, await python.fits(file)] : [byCommand];
}
const all = (fit: boolean): boolean[] => (python ? [fit, fit] : [fit]);

const AUTHORSHIP = {
  account_id: 'acct_1',
  causation_id: 'test',
  key_id: 'key_1',
  recorded_at: '2026-01-01T00:00:00.000Z',
  request_id: 'test',
};

interface Forged {
  data?: unknown;
  /** What the hash covers, where it is not the data. */
  covered?: unknown;
  event?: object;
  metadata?: object;
  /** Added below the checkpoint. */
  signatures?: string;
  /** The other one of two leaves, as long as it may be. */
  sibling?: Buffer;
  /** In place of members of the line. */
  wrap?: object;
}

const SIBLING = Buffer.alloc(32, 7);

/** Checkpoint and proof of a tree of two leaves, of which the first one is that of an event. */
function treeOfTwo(hash: string, sibling: Buffer): Record<string, string> {
  const leaf = leafHash(leafEntry(hash, 0));
  const top = createHash('sha256')
    .update(Buffer.concat([Buffer.of(1), leaf, sibling]))
    .digest();
  const text = formatCheckpoint({ origin: signer.key.name, size: 2, root: top });
  const checkpoint = signNote(text, [signer]);
  const proof = formatProof({ index: 0, hashes: [sibling], checkpoint });
  return { checkpoint, 'session.tlog-proof': proof };
}

/** A bundle of one event, whose hash covers what it is told to, and which the log has signed. */
async function forge({ data = {}, covered, event, sibling, wrap, ...more }: Forged) {
  const { signatures = '' } = more;
  const metadata = { ...AUTHORSHIP, ...more.metadata };
  const stream = `session-${SESSION}`;
  const members = { id: 'id', stream, revision: 0, type: 'session.x.v1', ...event };
  const text = canonicalJson({ ...members, data: covered ?? data, metadata });
  const hash = createHash('sha256').update(`${GENESIS_HASH}${text}`).digest('hex');
  const shown = { ...members, data, metadata: { ...metadata, prev_hash: GENESIS_HASH, hash } };
  const head = { revision: 0, metadata: { hash } } as ShownEvent;
  const small = Object.fromEntries((await makeBundle([head])).small);
  Object.assign(small, treeOfTwo(hash, sibling ?? SIBLING));
  small['checkpoint'] += signatures;
  small['session.tlog-proof'] += signatures;
  const line = {
    event: shown,
    hashes: [(sibling ?? SIBLING).toString('base64')],
    leaf: 0,
    ...wrap,
  };
  await writeTexts(file, { ...small, 'events.jsonl': `${canonicalJson(line)}\n` });
}

const A = 'a'.repeat(64);
const ALONE = { a: { sha256: A } };
const SEALED = { a: { sha256: A, box: `${'k'.repeat(16)}.${'A'.repeat(60)}` } };
const ODD = (sha256: string) => ({ a: { sha256, salt: null, text: null } });
const TEXT = createHash('sha256').update(Buffer.alloc(16)).update('5').digest('hex');
const NUMBER = { a: { sha256: TEXT, salt: 'A'.repeat(22), text: 5 } };
const LINE = 4 * 1024 * 1024;
/** What a line has besides the characters of its data, which are a string. */
const BARE = `{"event":,"hashes":["${SIBLING.toString('base64')}"],"leaf":0}{"data":"","id":"id","metadata":,"revision":0,"stream":"session-${SESSION}","type":"session.x.v1"}
${canonicalJson({ ...AUTHORSHIP, hash: A, prev_hash: A })}`;
/** Of an event whose line has so many bytes. */
const long = (bytes: number): Forged => ({ data: 'x'.repeat(bytes - BARE.length) });
const signature = '— other AAAAAAAAAAAA\n';

const FORGED: Array<[string, boolean, Forged]> = [
  ['nothing is odd', true, { data: ALONE, covered: ALONE }],
  ['a box stands there that no hash covers', false, { data: SEALED, covered: ALONE }],
  ['a box stands there that the hash covers', true, { data: SEALED }],
  ['what is no text looks much like one', true, { data: ODD(A) }],
  ['a text is a number', true, { data: NUMBER }],
  ['a number is covered as a text', false, { data: NUMBER, covered: { a: { sha256: TEXT } } }],
  ['erased is not true', true, { data: { a: { sha256: A, erased: false } } }],
  ['a text is plain', true, { data: { input: 'x' } }],
  ['a text is plain beside a protected one', false, { data: { ...ALONE, input: 'x' } }],
  [
    'a label is plain beside a protected text',
    false,
    { data: { ...ALONE, labels: [{ name: 'x' }] } },
  ],
  ['a label is none', true, { data: { ...ALONE, labels: ['name', null, ['x'], { name: 5 }] } }],
  ['a member of another member is plain', true, { data: { ...ALONE, x: { input: 'x' } } }],
  ['a line has another leaf', false, { wrap: { leaf: 1 } }],
  ['a line has a leaf as a string', false, { wrap: { leaf: '0' } }],
  ['a line has a leaf that is no number', false, { wrap: { leaf: -1 } }],
  ['a line has no hashes', false, { wrap: { hashes: [] } }],
  ['a line has a hash that is none', false, { wrap: { hashes: ['AAAA'] } }],
  ['a line has hashes that are none', false, { wrap: { hashes: 'x' } }],
  ['a line has a member more', false, { wrap: { more: 1 } }],
  ['the revision is a string', false, { event: { revision: '0' } }],
  ['metadata has other members', true, { metadata: { account_id: 5 } }],
  ['a line is as long as may be', true, long(LINE)],
  ['a line is too long', false, long(LINE + 1)],
  ['others have signed too', true, { signatures: signature.repeat(99) }],
  ['too many have signed', false, { signatures: signature.repeat(100) }],
  ['a signature has no bytes', false, { signatures: '— other AAAAAA==\n' }],
  ['a hash of the proof has its length', true, { sibling: Buffer.alloc(32, 7) }],
  ['a hash of the proof is too short', false, { sibling: Buffer.alloc(31, 7) }],
  ['the name of a key has a space', false, { signatures: '— a\u00a0b AAAAAAAAAAAA\n' }],
  ['the name of a key has what is no space', true, { signatures: '— a\ufeffb AAAAAAAAAAAA\n' }],
];

describe('both verifiers say the same where', () => {
  test.each(FORGED)('%s: %s', async (_what, fit, forged) => {
    await forge(forged);
    expect(await fits()).toEqual(all(fit));
  });
});

const BLOCK = 512;
/** A header with other bytes somewhere, and the sum that is right. */
function header(bytes: Buffer, from: number, text: string): Buffer {
  const at = bytes.subarray(0, BLOCK);
  at.write(text, from, 'latin1');
  at.write(' '.repeat(8), 148);
  const sum = at.reduce((before, byte) => before + byte, 0);
  at.write(`${sum.toString(8).padStart(6, '0')} \0`, 148);
  return bytes;
}
const joined = (...parts: Buffer[]): Buffer => Buffer.concat(parts);
const longName = (bytes: Buffer): Buffer => {
  const named = Buffer.alloc(2 * BLOCK);
  bytes.copy(named, 0, 0, BLOCK);
  named.write('manifest', BLOCK);
  header(header(named, 124, '00000000011 '), 156, 'L');
  return joined(named, header(bytes, 0, 'another!'));
};

const ARCHIVES: Array<[string, (bytes: Buffer) => Buffer]> = [
  ['a block of zeros comes first', (bytes) => joined(Buffer.alloc(BLOCK), bytes)],
  ['the end has one block', (bytes) => bytes.subarray(0, -BLOCK)],
  [
    'the end is not all zeros',
    (bytes) => bytes.fill('x', bytes.length - 1_000, bytes.length - 999),
  ],
  ['there is no end', (bytes) => bytes.subarray(0, -2 * BLOCK)],
  ['the end goes on', (bytes) => joined(bytes, Buffer.alloc(BLOCK))],
  ['something stands behind the end', (bytes) => joined(bytes, bytes)],
  ['something stands behind a file', (bytes) => bytes.fill('x', 2 * BLOCK - 9, 2 * BLOCK)],
  ['a file has an older type', (bytes) => header(bytes, 156, '\0')],
  ['a file has another name elsewhere', longName],
  ['a header is of another format', (bytes) => header(bytes, 257, 'ustar  \0')],
  ['a header has a name of an owner', (bytes) => header(bytes, 265, 'root')],
  ['a header has another sum', (bytes) => bytes.fill('7', 148, 149)],
  ['a time is none', (bytes) => header(bytes, 136, 'zzzzzzzzzzz ')],
  ['a size is written in another way', (bytes) => header(bytes, 124, '        ')],
];

describe('both verifiers refuse an archive where', () => {
  test.each(ARCHIVES)('%s', async (_what, change) => {
    await forge({});
    expect(await fits()).toEqual(all(true));
    await writeFile(file, change(await readFile(file)));
    expect(await fits()).toEqual(all(false));
  });
});
