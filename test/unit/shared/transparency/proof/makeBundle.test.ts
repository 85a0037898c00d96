import { execFile } from 'node:child_process';
import { createHash, generateKeyPairSync } from 'node:crypto';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { pack } from 'tar-stream';
import { readTar } from '../../../../../infra/tar/readTar.ts';
import { canonicalJson } from '../../../../../shared/eventlog/canonicalJson.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import {
  shownEventHash,
  type ShownEvent,
} from '../../../../../shared/transparency/proof/shownTexts.ts';
import {
  verifyBundle,
  type TrustedValues,
} from '../../../../../shared/transparency/proof/verifyBundle.ts';
import { signNote } from '../../../../../shared/transparency/tlog/note.ts';
import {
  COSIGNATURE,
  formatVkey,
  noteSigner,
} from '../../../../../shared/transparency/tlog/noteKeys.ts';
import { root } from '../../../../support/docs/projectFiles.ts';
import {
  makeBundle,
  SESSION,
  shownSession,
  signer,
  textsOf,
  witness,
  writeTexts,
  type BundleTexts,
} from '../../../../support/builders/bundles.ts';
import { orSkip } from '../../../../support/processes/recipes/installed.ts';
import { temporaryFolder } from '../../../../support/stores/sqlite/sqliteEventStore.ts';

const run = promisify(execFile);
const VKEY = formatVkey(signer.key);
const events = shownSession();

let folder: string;
let python: string | undefined;
let good: BundleTexts;
const olderTrees = new Map<number, string>();
beforeAll(async () => {
  folder = await temporaryFolder();
  good = await textsOf(await makeBundle(events));
  olderTrees.set(100, (await makeBundle(events, '', 100)).small.get('consistency')!);
  python = await orSkip(
    () => run('python3', ['--version']).then(() => 'python3'),
    'Install Python 3.8 or later.',
  );
});
afterAll(() => rm(folder, { recursive: true }));

const verify = (file: string, known: Partial<TrustedValues> = {}) =>
  verifyBundle(readTar(file), { vkey: VKEY, witnesses: [], ...known }, () => undefined);

const VERIFIER = join(root, 'examples/verify_bundle.py');

/** What the verifier in Python says, and how it ends. */
const byPython = (file: string): Promise<{ code: number; text: string }> =>
  run(python!, ['-B', VERIFIER, file, VKEY]).then(
    ({ stdout }) => ({ code: 0, text: stdout }),
    ({ code, stderr }: { code: number; stderr: string }) => ({ code, text: stderr }),
  );

/** Which of many files fit in its eyes: starting it for each takes a second. */
const MANY = `
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("verifier", sys.argv[1])
verifier = importlib.util.module_from_spec(spec)
spec.loader.exec_module(verifier)
def fits(file):
    try:
        return bool(verifier.verify(file, sys.argv[2]))
    except Exception:
        return False
print(json.dumps([fits(file) for file in sys.argv[3:]]))
`;
async function fitsInPython(files: readonly string[]): Promise<boolean[]> {
  const { stdout } = await run(python!, ['-B', '-c', MANY, VERIFIER, VKEY, ...files]);
  return JSON.parse(stdout) as boolean[];
}

async function fileOf(texts: BundleTexts): Promise<string> {
  const file = join(folder, 'bundle.tar');
  await writeTexts(file, texts);
  return file;
}

describe('a bundle that nobody changed', () => {
  test('fits, and shows what it shows', async () => {
    const { seen, index, checkpoint, vkey, cosigned, session_id } = await verify(
      await fileOf(good),
      { witnesses: [formatVkey(witness.key)] },
    );
    expect({ session_id, events: seen.events, index, size: checkpoint.size, vkey }).toEqual({
      session_id: SESSION,
      events: 10,
      index: 300,
      size: 312,
      vkey: VKEY,
    });
    expect([seen.disclosed, seen.redacted, cosigned]).toEqual([15, 0, [witness.key.name]]);
  });

  test('fits in the eyes of the verifier in Python', async () => {
    if (!python) return;
    const { code, text } = await byPython(await fileOf(good));
    expect(text).toBe(
      "All fits: 10 events, the last one is leaf 300 of 312. Texts: {'disclosed': 15}\n",
    );
    expect(code).toBe(0);
  });

  test('has the same bytes each time, and nothing else is left beside it', async () => {
    const file = await fileOf(good);
    const sha256 = createHash('sha256')
      .update(await readFile(file))
      .digest('hex');
    await fileOf(good);
    expect(
      createHash('sha256')
        .update(await readFile(file))
        .digest('hex'),
    ).toBe(sha256);
    expect((await readdir(folder)).filter((name) => name.includes('partial'))).toEqual([]);
  });

  test('is a tar that tar reads', async () => {
    const { stdout } = await run('tar', ['-tf', await fileOf(good)]);
    expect(stdout).toBe(
      'manifest\nvkey\ncheckpoint\nsession.tlog-proof\nconsistency\nevents.jsonl\n',
    );
  });
});

describe('a redaction', () => {
  const hidden = async (redact: string): Promise<string[]> => {
    const file = await fileOf(await textsOf(await makeBundle(events, redact)));
    if (python) expect(await fitsInPython([file])).toEqual([true]);
    return (await verify(file)).seen.hidden.map(({ revision, field }) => `${revision} ${field}`);
  };
  const HASHES = ['3 request_sha256', '6 request_sha256', '9 request_sha256'];

  test.each([
    ['2', ['4 input', '5 arguments', '5 result', '6 output']],
    ['2.input', ['4 input']],
    ['output', ['3 output', '6 output', '9 output']],
    ['1.input,3.result', ['1 input', '8 result']],
  ])('of %s takes out that, and the hashes of all prompts', async (redact, texts) => {
    expect((await hidden(redact)).toSorted()).toEqual([...texts, ...HASHES].toSorted());
  });

  test('leaves nothing of the texts in the file', async () => {
    const file = await fileOf(await textsOf(await makeBundle(events, '2')));
    const bytes = await readFile(file, 'latin1');
    expect(bytes).not.toMatch(/Question 2|result 2|Answer 2/);
    expect(bytes).toMatch(/Question 1/);
  });

  test('of what the session does not have is refused', async () => {
    const written = makeBundle(events, '2,33').then(textsOf);
    await expect(written).rejects.toThrow('no such text to redact: 33.');
  });

  test('of a text that its hash covers is refused', async () => {
    const plain = { ...events[1]!, data: { turn: 1, input: 'as it was' } };
    const hash = shownEventHash(plain);
    const old = [events[0]!, { ...plain, metadata: { ...plain.metadata, hash } }];
    await expect(makeBundle(old, 'input').then(textsOf)).rejects.toThrow(
      'before texts were protected',
    );
  });
});

const linesOf = (texts: BundleTexts): string[] => texts['events.jsonl']!.split('\n').slice(0, -1);
const withLines = (texts: BundleTexts, lines: readonly string[]): BundleTexts => ({
  ...texts,
  'events.jsonl': lines.map((line) => `${line}\n`).join(''),
});

/** The same bundle with one event changed, as canonical JSON again. */
const withEvent = (at: number, change: (event: any) => void): BundleTexts => {
  const lines = linesOf(good);
  const line = JSON.parse(lines[at]!) as { event: ShownEvent };
  change(line.event);
  return withLines(good, lines.with(at, canonicalJson(line)));
};

interface Line {
  event: ShownEvent;
  hashes: string[];
  leaf: number;
}

/** The same bundle with one line changed, as canonical JSON again. */
const withLine = (at: number, change: (line: Line) => void): BundleTexts => {
  const lines = linesOf(good);
  const line = JSON.parse(lines[at]!) as Line;
  change(line);
  return withLines(good, lines.with(at, canonicalJson(line)));
};

/**
 * A session that was rewritten before its last event was recorded: that one has a leaf, and is the
 * one that the proof leads to; those before it have the leaves of what they were.
 */
async function forgedBefore(): Promise<BundleTexts> {
  const forged = linesOf(rewritten(4)).map((line) => (JSON.parse(line) as Line).event);
  return textsOf(await makeBundle([...events.slice(0, -1), forged.at(-1)!], '', undefined, forged));
}

/** The file of an older tree, from a bundle with the one of another size. */
const olderTree = (size: number, proven: number): string =>
  olderTrees.get(proven)!.replace(/^\d+/, String(size));

/** All events from one on with hashes that fit in themselves. */
function rewritten(from: number): BundleTexts {
  let prev_hash = '';
  const lines = linesOf(good).map((line, at) => {
    const whole = JSON.parse(line) as { event: ShownEvent };
    const { event } = whole;
    if (at < from) {
      prev_hash = event.metadata.hash;
      return line;
    }
    if (at === from) Object.assign(event.data as object, { turn: 7 });
    event.metadata.prev_hash = prev_hash;
    prev_hash = event.metadata.hash = shownEventHash(event);
    return canonicalJson(whole);
  });
  return withLines(good, lines);
}

const swapBytes = (text: string, from: string, to: string): string => {
  if (!text.includes(from)) throw new Error(`there is no ${from}`);
  return text.replace(from, to);
};
const withCount = (texts: BundleTexts, count: number): BundleTexts => ({
  ...texts,
  manifest: swapBytes(texts['manifest']!, '"events":10', `"events":${count}`),
});

/** By what was done: the changed bundle, and what is said of it. */
const CHANGES: Record<string, [() => BundleTexts | Promise<BundleTexts>, string | RegExp]> = {
  'a text was changed': [
    () => withEvent(1, ({ data }) => (data.input.text = 'Other')),
    'revision 1 does not fit: its input is not the text that was committed to',
  ],
  'a text was moved into its salt': [
    () =>
      withEvent(3, ({ data: { output } }) => {
        const salt = Buffer.concat([Buffer.from(output.salt, 'base64url'), Buffer.from('A')]);
        Object.assign(output, { salt: salt.toString('base64url'), text: output.text.slice(1) });
      }),
    'revision 3 does not fit: its output is not the text that was committed to',
  ],
  'a commitment was changed': [
    () => withEvent(3, ({ data }) => (data.output = { sha256: 'b'.repeat(64) })),
    'revision 3 does not fit: its hash does not match its content',
  ],
  'other data was changed': [
    () => withEvent(2, ({ data }) => (data.is_error = true)),
    'revision 2 does not fit: its hash does not match its content',
  ],
  'who wrote it was changed': [
    () => withEvent(2, ({ metadata }) => (metadata.account_id = 'acct_2')),
    'revision 2 does not fit: its hash does not match its content',
  ],
  'an event was dropped': [
    () => withCount(withLines(good, linesOf(good).toSpliced(4, 1)), 9),
    'revision 4 does not fit: its revision is 5 instead of 4',
  ],
  'two events were swapped': [
    () => withLines(good, linesOf(good).with(4, linesOf(good)[5]!).with(5, linesOf(good)[4]!)),
    'revision 4 does not fit: its revision is 5 instead of 4',
  ],
  'an event was duplicated': [
    () => withCount(withLines(good, linesOf(good).toSpliced(5, 0, linesOf(good)[4]!)), 11),
    'revision 5 does not fit: its revision is 4 instead of 5',
  ],
  'an event was inserted': [
    () => {
      const more = JSON.parse(linesOf(good)[4]!) as { event: ShownEvent };
      more.event.revision = 5;
      return withCount(withLines(good, linesOf(good).toSpliced(5, 0, canonicalJson(more))), 11);
    },
    'revision 5 does not fit: its prev_hash is not the hash of the event before it',
  ],
  'it was rewritten with hashes that fit': [
    () => rewritten(4),
    "revision 4 does not fit: the checkpoint's tree does not have it at leaf 290",
  ],
  'its end was cut off': [
    () => withCount(withLines(good, linesOf(good).slice(0, -1)), 9),
    'does not lead from the last event',
  ],
  'its end was cut off, and not the manifest': [
    () => withLines(good, linesOf(good).slice(0, -1)),
    'has 9 events, and its manifest says 10',
  ],
  'it is of another session': [
    () => ({ ...good, manifest: swapBytes(good['manifest']!, '1a3"', '1a4"') }),
    'revision 0 does not fit: it is of the stream',
  ],
  'a name stands twice in an event': [
    () =>
      withLines(
        good,
        linesOf(good).with(
          2,
          linesOf(good)[2]!.replace('{"event":{"data"', '{"event":{"data":0,"data"'),
        ),
      ),
    'Line 3 of events.jsonl is not canonical JSON',
  ],
  'the index was changed': [
    () => ({
      ...good,
      'session.tlog-proof': swapBytes(good['session.tlog-proof']!, 'index 300', 'index 301'),
    }),
    'does not lead from the last event',
  ],
  'the root was changed in both checkpoints': [
    () => {
      const line = good['checkpoint']!.split('\n')[2]!;
      const other = Buffer.alloc(32, 5).toString('base64');
      return {
        ...good,
        checkpoint: swapBytes(good['checkpoint']!, line, other),
        'session.tlog-proof': swapBytes(good['session.tlog-proof']!, line, other),
      };
    },
    /signature .* is wrong/,
  ],
  'the checkpoint is another one': [
    () => ({ ...good, checkpoint: swapBytes(good['checkpoint']!, '\n312\n', '\n313\n') }),
    /signature .* is wrong|not of the checkpoint/,
  ],
  'the signature is gone': [
    () => {
      const own = good['checkpoint']!.split('\n').find(
        (line) => line.includes(signer.key.name) && line.startsWith('—'),
      )!;
      return {
        ...good,
        checkpoint: swapBytes(good['checkpoint']!, `${own}\n`, ''),
        'session.tlog-proof': swapBytes(good['session.tlog-proof']!, `${own}\n`, ''),
      };
    },
    'no signature of a key that is known',
  ],
  'a file is missing': [
    () => {
      const { vkey: _gone, ...rest } = good;
      return rest;
    },
    'where vkey is due stands "checkpoint"',
  ],
  'a file has a path': [
    () => ({ '../manifest': good['manifest']!, ...good }),
    'where manifest is due stands "../manifest"',
  ],
  'a small file is large': [
    () => ({ ...good, vkey: 'x'.repeat(70_000) }),
    'vkey has more than 65536 bytes',
  ],
  'a line is endless': [
    () => ({ ...good, 'events.jsonl': 'x'.repeat(5_000_000) }),
    /Line 1 of events.jsonl has (more than 4194304 bytes|no end)/,
  ],
  'the last line has no end': [
    () => ({ ...good, 'events.jsonl': good['events.jsonl']!.slice(0, -1) }),
    'Line 10 of events.jsonl has no end',
  ],
  'a text is said to be disclosed, and is not shown': [
    () =>
      withEvent(3, ({ data }) => {
        data.output = { sha256: data.output.sha256, salt: null, text: null };
      }),
    'revision 3 does not fit',
  ],
  'a text is said to be erased, and not so': [
    () =>
      withEvent(3, ({ data }) => {
        data.output = { sha256: data.output.sha256, erased: false };
      }),
    'revision 3 does not fit',
  ],
  'a salt has more characters than its bytes need': [
    () => withEvent(3, ({ data: { output } }) => (output.salt += '!')),
    'revision 3 does not fit: its output is not the text that was committed to',
  ],
  'an event has a member more': [
    () => withEvent(9, (event) => Object.assign(event, { position: '1' })),
    'revision 9 does not fit: it is no event',
  ],
  'a number is written in another way': [
    () =>
      withLines(
        good,
        linesOf(good).map((line) => line.replace('0.25', '0.250')),
      ),
    'Line 2 of events.jsonl is not canonical JSON',
  ],
  'a number is none': [
    () =>
      withLines(
        good,
        linesOf(good).map((line) => line.replace('0.25', 'NaN')),
      ),
    'Line 2 of events.jsonl is not canonical JSON',
  ],
  'lines end as on other systems': [
    () => ({ ...good, 'events.jsonl': good['events.jsonl']!.replaceAll('\n', '\r\n') }),
    'Line 1 of events.jsonl is not canonical JSON',
  ],
  'its manifest is of a later version': [
    () => ({
      ...good,
      manifest: swapBytes(good['manifest']!, '"turnlog_bundle":2', '"turnlog_bundle":3'),
    }),
    'manifest is not of a bundle that is known',
  ],
  'its manifest is of version 1': [
    () => ({
      ...good,
      manifest: swapBytes(good['manifest']!, '"turnlog_bundle":2', '"turnlog_bundle":1'),
    }),
    'of version 1, which proves only its last event',
  ],
  'its events were rewritten before the last one was recorded': [
    () => forgedBefore(),
    "revision 4 does not fit: the checkpoint's tree does not have it at leaf 290",
  ],
  'a hash of an event is left out': [
    () => withLine(0, (line) => line.hashes.pop()),
    "revision 0 does not fit: the checkpoint's tree does not have it at leaf 282",
  ],
  'a leaf is before the one of the event before': [
    () => withLine(5, (line) => (line.leaf = 286)),
    'revision 5 does not fit',
  ],
  'its consistency proof is of another tree': [
    () => ({ ...good, consistency: olderTree(12, 100) }),
    'does not lead from the older tree of 12 leaves',
  ],
  'its consistency proof is none': [
    () => ({ ...good, consistency: 'x\n' }),
    'A consistency proof is a size, a root and hashes',
  ],
  'its manifest says a name twice': [
    () => ({ ...good, manifest: swapBytes(good['manifest']!, '{', '{"events":1,') }),
    'manifest is not canonical JSON',
  ],
  'its manifest ends in blanks': [
    () => ({ ...good, manifest: `${good['manifest']!.trimEnd()} \r\n` }),
    'manifest is not canonical JSON',
  ],
  'it is said to be of another session': [
    () => ({
      ...good,
      manifest: swapBytes(good['manifest']!, SESSION, `${SESSION.slice(0, -1)}0`),
    }),
    'revision 0 does not fit: it is of the stream',
  ],
  'its proof has data that nothing vouches for': [
    () => ({
      ...good,
      'session.tlog-proof': swapBytes(
        good['session.tlog-proof']!,
        '\nindex',
        '\nextra AAAA\nindex',
      ),
    }),
    'has no extra data',
  ],
  'the signature stands there twice': [
    () => {
      const own = good['checkpoint']!.split('\n').find(
        (line) => line.startsWith('—') && line.includes(signer.key.name),
      )!;
      return {
        ...good,
        checkpoint: good['checkpoint']! + `${own}\n`,
        'session.tlog-proof': good['session.tlog-proof']! + `${own}\n`,
      };
    },
    'two signatures',
  ],
  'JSON is nested deeply': [
    () => {
      const deep = '['.repeat(1_000_000) + ']'.repeat(1_000_000);
      return withLines(good, linesOf(good).with(0, linesOf(good)[0]!.replace('"agent_1"', deep)));
    },
    'revision 0 does not fit',
  ],
};

describe('a bundle is refused, and the misfit named, when', () => {
  test.each(Object.entries(CHANGES))('%s', async (_what, [change, said]) => {
    const file = await fileOf(await change());
    await expect(verify(file)).rejects.toThrow(said);
  });

  test('any of that was done, in the eyes of the verifier in Python', async () => {
    if (!python) return;
    const files = await Promise.all(
      Object.values(CHANGES).map(async ([change], at) => {
        const file = join(folder, `changed-${at}.tar`);
        await writeTexts(file, await change());
        return file;
      }),
    );
    const whole = await fileOf(good);
    expect(await fitsInPython([whole, ...files])).toEqual([true, ...files.map(() => false)]);
    const { code, text } = await byPython(files[0]!);
    expect({ code, text }).toEqual({
      code: 1,
      text: 'It does not fit: a text is not the one due\n',
    });
  });

  test('none of the witnesses that are given has cosigned it', async () => {
    const other = noteSigner('other/w', generateKeyPairSync('ed25519').privateKey, COSIGNATURE);
    const file = await fileOf(good);
    const both = [other, witness].map(({ key }) => formatVkey(key));
    await expect(verify(file, { witnesses: both.slice(0, 1) })).rejects.toThrow('None of the');
    expect((await verify(file, { witnesses: both })).cosigned).toEqual([witness.key.name]);
  });

  test('it is signed by another key than the one that is known', async () => {
    const other = formatVkey({ ...signer.key, publicKey: witness.key.publicKey });
    await expect(verify(await fileOf(good), { vkey: other })).rejects.toThrow();
  });

  test('a checkpoint that the log published elsewhere has another root', async () => {
    const elsewhere = await textsOf(await makeBundle(shownSession()));
    await expect(
      verify(await fileOf(good), { checkpoint: elsewhere['checkpoint']! }),
    ).rejects.toThrow('two histories');
    await verify(await fileOf(good), { checkpoint: good['checkpoint']! });
  });
});

describe('an older checkpoint', () => {
  const SIZES = [0, 1, 2, 255, 256, 257, 290, 311, 312];
  const extending = async (size: number): Promise<BundleTexts> =>
    textsOf(await makeBundle(events, '', size));

  test('is one that the tree of the bundle is proven to extend, of whatever size', async () => {
    const files: string[] = [];
    for (const size of SIZES) {
      const texts = size === 312 ? good : await extending(size);
      const file = join(folder, `extends-${size}.tar`);
      await writeTexts(file, texts);
      files.push(file);
      expect((await verify(file)).extends).toBe(size === 312 ? undefined : size);
    }
    if (python) expect(await fitsInPython(files)).toEqual(SIZES.map(() => true));
  });

  test('that a reader has is taken where it is that one, and refused where it is another', async () => {
    const texts = await extending(100);
    const file = await fileOf(texts);
    const [, olderRoot] = texts['consistency']!.split('\n');
    const kept = (size: number, of: string): string =>
      signNote(`${signer.key.name}\n${size}\n${of}\n`, [signer]);
    const other = Buffer.alloc(32, 3).toString('base64');
    expect((await verify(file, { checkpoint: kept(100, olderRoot!) })).extends).toBe(100);
    await expect(verify(file, { checkpoint: kept(100, other) })).rejects.toThrow('two histories');
    await expect(verify(file, { checkpoint: kept(99, olderRoot!) })).rejects.toThrow(
      'ask for a bundle that is exported with that checkpoint',
    );
    if (!python) return;
    for (const [note, code] of [
      [kept(100, olderRoot!), 0],
      [kept(100, other), 1],
      [kept(99, olderRoot!), 1],
    ] as const) {
      const name = join(folder, 'kept.checkpoint');
      await writeFile(name, note);
      const ended = await run(python, ['-B', VERIFIER, file, VKEY, name]).then(
        () => 0,
        (error: { code: number }) => error.code,
      );
      expect(ended).toBe(code);
    }
  });
});

describe('an event of a bundle', () => {
  const MOST = LIMITS.proof.lineBytes;
  /** What the line of a last event has beside it, as long as it is. */
  const HASHES = Array.from({ length: 7 }, () => `${'A'.repeat(43)}=`);
  const WRAPPED = canonicalJson({ event: 0, hashes: HASHES, leaf: 300 }).length - 1;

  /** A session of one event, whose line has so many bytes, with its line feed. */
  function sessionOf(bytes: number): ShownEvent[] {
    const [{ data, ...event }] = events as [ShownEvent];
    const filled = (fill: string): ShownEvent => ({
      ...event,
      data: { ...(data as object), fill },
    });
    const long = filled('x'.repeat(bytes - WRAPPED - 1 - canonicalJson(filled('')).length));
    return [{ ...long, metadata: { ...long.metadata, hash: shownEventHash(long) } }];
  }

  test('may be as long as a verifier takes it', async () => {
    const file = await fileOf(await textsOf(await makeBundle(sessionOf(MOST))));
    expect((await verify(file)).seen.events).toBe(1);
    if (python) expect(await fitsInPython([file])).toEqual([true]);
  });

  test('is not written where it is longer', async () => {
    const { last } = await makeBundle(sessionOf(MOST + 1));
    await expect(textsOf({ small: new Map(), last, seen: {} as never })).rejects.toMatchObject({
      code: 'configuration_invalid',
      message: expect.stringContaining(`revision 0 takes ${MOST + 1} bytes`),
    });
  });

  test('is refused where it is longer, also between two that are not', async () => {
    const [first, ...rest] = good['events.jsonl']!.split('\n');
    const [long] = sessionOf(MOST + 1);
    const line = { event: long, hashes: HASHES, leaf: 300 };
    const lines = [first, canonicalJson(line), ...rest].join('\n');
    const file = await fileOf({ ...good, 'events.jsonl': lines });
    await expect(verify(file)).rejects.toThrow(
      `Line 2 of events.jsonl has more than ${MOST} bytes`,
    );
    if (python) expect(await fitsInPython([file])).toEqual([false]);
  });

  test('takes no more than 210 lines of Python', async () => {
    expect((await readFile(VERIFIER, 'utf8')).split('\n').length - 1).toBeLessThanOrEqual(210);
  });

  test('is refused in plain words where it is nested too deep to be read', async () => {
    const deep = `{"data":${'['.repeat(100_000)}${']'.repeat(100_000)}}\n`;
    const file = await fileOf({ ...good, 'events.jsonl': deep });
    await expect(verify(file)).rejects.toMatchObject({ code: 'proof_invalid' });
    if (!python) return;
    expect(await byPython(file)).toEqual({
      code: 1,
      text: 'It does not fit: an event is nested too deep\n',
    });
  });
});

describe('an archive of an enemy', () => {
  const archived = async (fill: (archive: ReturnType<typeof pack>) => void): Promise<string> => {
    const file = join(folder, 'enemy.tar');
    const archive = pack();
    fill(archive);
    archive.finalize();
    await writeFile(file, archive as unknown as AsyncIterable<Uint8Array>);
    return file;
  };

  test('that links where a file is due is refused', async () => {
    const file = await archived((archive) =>
      archive.entry({ name: 'manifest', type: 'symlink', linkname: '/etc/passwd' }),
    );
    await expect(verify(file)).rejects.toThrow('what is no file of a bundle, "manifest"');
  });

  test('that says in an extended header what its file is called is refused', async () => {
    const file = await archived((archive) =>
      archive.entry({ name: 'x', pax: { path: 'manifest' } }, 'x'),
    );
    await expect(verify(file)).rejects.toThrow('what is no file');
  });

  test('that has a file twice is refused', async () => {
    const file = await archived((archive) => {
      for (const [name, text] of Object.entries(good)) archive.entry({ name }, text);
      archive.entry({ name: 'events.jsonl' }, good['events.jsonl']!);
    });
    await expect(verify(file)).rejects.toThrow('further files');
    if (python) expect((await byPython(file)).code).toBe(1);
  });

  test.each([
    ['is cut off', (bytes: Buffer) => bytes.subarray(0, bytes.length / 2)],
    ['is none', () => Buffer.from('x'.repeat(2_000))],
    ['is empty', () => Buffer.alloc(0)],
    [
      'says a size that it does not have',
      (bytes: Buffer) => {
        const at = bytes.indexOf('events.jsonl');
        bytes.write('77777777777 ', at + 124);
        bytes.write('        ', at + 148);
        const sum = bytes.subarray(at, at + 512).reduce((all, byte) => all + byte, 0);
        bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, at + 148);
        return bytes;
      },
    ],
  ])('that %s is refused', async (_what, change) => {
    const file = await fileOf(good);
    await writeFile(file, change(await readFile(file)));
    await expect(verify(file)).rejects.toMatchObject({ code: 'proof_invalid' });
    if (python) expect((await byPython(file)).code).toBe(1);
  });

  test('that is not there is told of as the system does', async () => {
    await expect(verify(join(folder, 'none.tar'))).rejects.toMatchObject({
      code: 'configuration_invalid',
    });
  });
});
