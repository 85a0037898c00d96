import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openOneFileTree } from '../../../infra/files/tileReader.ts';
import { openFileTileTrees } from '../../../infra/files/tileStore.ts';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore/eventStore.ts';
import type { StoredEvent, SubscribeOptions } from '../../../shared/ports/eventStore.ts';
import type { CosignRequest, Witness } from '../../../shared/transparency/witness.ts';
import { parseCheckpoint } from '../../../shared/transparency/tlog/checkpoint.ts';
import { cosign, verifyCosignature } from '../../../shared/transparency/tlog/cosignature.ts';
import { leafEntry, findLeafIndex } from '../../../shared/transparency/tlog/leaf.ts';
import { leafHash } from '../../../shared/transparency/tlog/merkle.ts';
import { proveEvent } from '../../../shared/transparency/proof/proveEvent.ts';
import { openNote, parseNote, signatureLine } from '../../../shared/transparency/tlog/note.ts';
import { COSIGNATURE, noteSigner } from '../../../shared/transparency/tlog/noteKeys.ts';
import { consistencyProof, inclusionProof } from '../../../shared/transparency/tlog/proofs.ts';
import { verifyConsistency, verifyInclusion } from '../../../shared/transparency/tlog/verify.ts';
import { declareRestored } from '../../support/stores/declareRestored.ts';
import { fixedLog } from '../../support/fakes/fixedLog.ts';
import { memoryReads } from '../../support/fakes/memoryReads.ts';
import { sessionStarted, turnStarted } from '../../support/builders/events.ts';
import { recordHistory } from '../../support/builders/history.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import {
  signingKey,
  someEvents,
  startProver,
  type RunningProver,
} from '../../support/builders/prover.ts';

const EVENTS = someEvents(700);
const LOG_ID = EVENTS[0]!.id;
const ORIGIN = `turnlog/${LOG_ID}`;
const key = signingKey();

let folder: string;
let trees: string;
let provers: RunningProver[];
beforeEach(async () => {
  folder = await temporaryFolder();
  trees = join(folder, 'tlog');
  provers = [];
});
afterEach(async () => {
  for (const prover of provers) await prover.stop();
  await rm(folder, { recursive: true });
});

function prove(
  events: readonly StoredEvent[],
  options: Parameters<typeof startProver>[2] = {},
): RunningProver {
  const prover = startProver(fixedLog(events, 100), trees, {
    signingKeys: () => [key],
    ...options,
  });
  provers.push(prover);
  return prover;
}

/** Proves these events, and stops. */
async function proved(events: readonly StoredEvent[], options = {}): Promise<void> {
  const prover = prove(events, options);
  await prover.until(({ size }) => size === events.length);
  await prover.stop();
}

const hashOf = ({ metadata }: StoredEvent): string =>
  (JSON.parse(metadata) as { hash: string }).hash;

async function newestCheckpoint(signer = key, origin = ORIGIN) {
  const note = (await openOneFileTree(trees).readCheckpoint())!;
  return parseCheckpoint(openNote(note, [noteSigner(origin, signer).key]).text);
}

const inTree = (file: string): string => join(trees, ORIGIN, file);

test('every event has its leaf, in the order of the log, under a signed checkpoint', async () => {
  await proved(EVENTS);
  const reader = openOneFileTree(trees);
  const head = await newestCheckpoint();
  expect(head).toMatchObject({ origin: ORIGIN, size: EVENTS.length });
  for (const index of [0, 255, 256, 699]) {
    const event = EVENTS[index]!;
    const found = await findLeafIndex(
      reader,
      { position: event.position, hash: hashOf(event) },
      head.size,
    );
    expect(found).toBe(index);
    const leaf = leafHash(leafEntry(hashOf(event), index));
    expect(verifyInclusion(await inclusionProof(reader, index, head.size), index, leaf, head)).toBe(
      true,
    );
  }
});

test('it goes on where it was, and each checkpoint continues the one before', async () => {
  await proved(EVENTS.slice(0, 300));
  const before = await newestCheckpoint();
  await proved(EVENTS);
  const after = await newestCheckpoint();
  const proof = await consistencyProof(openOneFileTree(trees), before.size, after.size);
  expect(verifyConsistency(proof, before, after)).toBe(true);
  const inOne = join(folder, 'other');
  const other = startProver(fixedLog(EVENTS), inOne, { signingKeys: () => [key] });
  provers.push(other);
  await other.until(({ size }) => size === EVENTS.length);
  const note = (await openOneFileTree(inOne).readCheckpoint())!;
  expect(parseCheckpoint(openNote(note, [noteSigner(ORIGIN, key).key]).text)).toEqual(after);
});

test('no leaf is added after an event that the store leaves out, until it delivers it', async () => {
  const { record } = recordHistory();
  const events = Array.from({ length: 10 }, (_, turn) =>
    record({ stream: 'session-session_1' }, turn === 0 ? sessionStarted() : turnStarted(turn)),
  );
  let delivered = events.toSpliced(5, 1);
  const lying = {
    ...fixedLog(events),
    ...memoryReads(events),
    subscribe: (options: SubscribeOptions) => fixedLog(delivered, 1).subscribe(options),
  };
  const prover = startProver(lying, trees, { signingKeys: () => [key] });
  provers.push(prover);
  const { trouble } = await prover.until((report) => report.trouble !== undefined);
  expect(trouble).toContain('revision 6 of the stream session-session_1 without revision 5');
  delivered = events;
  await prover.until(({ size }) => size === events.length);
});

/** What a growth from 300 to 700 leaves changes, in its order, for a crash in between. */
const STEPS = [
  'tile/0/001',
  'tile/entries/001',
  'tile/0/002.p/188',
  'tile/1/000.p/2',
  'tile/entries/002.p/188',
  'bundles',
  '-tile/0/001.p',
  '-tile/entries/001.p',
  'state.json',
  'checkpoint',
];

test.each(STEPS.map((step, done) => [step, done]))(
  'a crash before %s leaves a tree that is carried on to the same end',
  async (_, done) => {
    await proved(EVENTS.slice(0, 300));
    const before = await newestCheckpoint();
    await cp(trees, join(folder, 'before'), { recursive: true });
    await proved(EVENTS);
    const after = await newestCheckpoint();
    await cp(trees, join(folder, 'after'), { recursive: true });
    await rm(trees, { recursive: true });
    await cp(join(folder, 'before'), trees, { recursive: true });
    for (const step of STEPS.slice(0, done as number)) {
      if (step.startsWith('-')) {
        await rm(inTree(step.slice(1)), { recursive: true });
        continue;
      }
      await mkdir(join(inTree(step), '..'), { recursive: true });
      await cp(join(folder, 'after', ORIGIN, step), inTree(step));
    }
    // What was being written as it crashed.
    await writeFile(inTree('state.json.tmp'), '{"si');
    expect(await newestCheckpoint()).toEqual(before);
    await proved(EVENTS);
    expect(await newestCheckpoint()).toEqual(after);
    const reader = openOneFileTree(trees);
    const proof = await consistencyProof(reader, before.size, after.size);
    expect(verifyConsistency(proof, before, after)).toBe(true);
    expect(await reader.read('tile/0/001.p/44')).toBeUndefined();
  },
);

test('a tree that was kept and not signed is signed, though nothing more comes', async () => {
  await proved(EVENTS.slice(0, 300));
  const older = await readFile(inTree('checkpoint'));
  await proved(EVENTS);
  await writeFile(inTree('checkpoint'), older);
  const prover = prove(EVENTS);
  await prover.until(({ size }) => size === EVENTS.length);
  expect(await newestCheckpoint()).toMatchObject({ size: EVENTS.length });
});

test.each([
  [
    'with an event that was changed',
    EVENTS.with(350, { ...someEvents(1)[0]!, position: EVENTS[350]!.position }),
  ],
  ['without an event', EVENTS.toSpliced(350, 1)],
])('leaves that were added to the files %s are not signed', async (_, forged) => {
  for (const signed of [100, 256, 300]) {
    await rm(trees, { recursive: true, force: true });
    await proved(EVENTS.slice(0, signed));
    const checkpoint = await readFile(inTree('checkpoint'));
    await proved(forged.slice(0, 600));
    await writeFile(inTree('checkpoint'), checkpoint);
    const prover = prove(EVENTS);
    const { trouble } = await prover.until((report) => report.trouble !== undefined);
    expect(trouble).toContain(
      `can't be continued: ${signed} of its 600 leaves were signed, and the others are not those of the event log`,
    );
    expect(await readFile(inTree('checkpoint'))).toEqual(checkpoint);
    await prover.stop();
  }
});

async function troubleWith(change: () => Promise<void>, options = {}): Promise<string> {
  await proved(EVENTS.slice(0, 300));
  const checkpoint = await readFile(inTree('checkpoint'));
  await change();
  const prover = prove(EVENTS, options);
  const { trouble } = await prover.until((report) => report.trouble !== undefined);
  await sleep(300);
  await prover.stop();
  // Told once, and nothing was signed.
  expect(prover.warnings).toHaveLength(1);
  expect(await readFile(inTree('checkpoint'))).toEqual(checkpoint);
  return trouble!;
}

test('a tile that was changed keeps it from signing, and is told', async () => {
  const trouble = await troubleWith(async () => {
    const tile = await readFile(inTree('tile/0/001.p/44'));
    tile[7]! ^= 1;
    await writeFile(inTree('tile/0/001.p/44'), tile);
  });
  expect(trouble).toContain(
    `${ORIGIN} can't be continued: its tiles don't have the root that was signed for 300`,
  );
});

test('a tile that is gone is told by its name', async () => {
  const trouble = await troubleWith(() => rm(inTree('tile/0/001.p'), { recursive: true }));
  expect(trouble).toContain('The transparency log has no tile/0/001.p/44.');
});

test('a tree that has lost its state is not begun anew', async () => {
  const trouble = await troubleWith(() => rm(inTree('state.json')));
  expect(trouble).toContain('300 leaves were signed, but only 0 are stored');
});

async function changeIn(file: string, change: (bytes: Buffer) => Buffer | void): Promise<void> {
  const bytes = await readFile(inTree(file));
  await writeFile(inTree(file), change(bytes) ?? bytes);
}

const DAMAGES: Record<string, () => Promise<unknown>> = {
  'is gone': () => rm(inTree('bundles')),
  'is empty': () => writeFile(inTree('bundles'), ''),
  'was cut in the middle of a record': () => changeIn('bundles', (all) => all.subarray(0, 1_200)),
  'has another position in a record': () =>
    changeIn('bundles', (all) => {
      const at = all.indexOf('"position":"', 1_024) + '"position":"'.length;
      all[at]! ^= 1;
    }),
};

test.each(Object.entries(DAMAGES))(
  'where bundles begin is read from the log again when the file %s',
  async (_, damage) => {
    await proved(EVENTS);
    const whole = await readFile(inTree('bundles'));
    await damage();
    expect(await readFile(inTree('bundles')).catch(() => undefined)).not.toEqual(whole);
    const { position } = EVENTS[699]!;
    const find = () =>
      findLeafIndex(openOneFileTree(trees), { position, hash: hashOf(EVENTS[699]!) }, 700);
    await expect(find()).rejects.toThrow('does not know where bundle');
    const prover = prove(EVENTS);
    while (!(await find().catch(() => undefined))) await sleep(5);
    await prover.stop();
    expect(await readFile(inTree('bundles'))).toEqual(whole);
    expect(prover.warnings).toEqual([
      expect.stringContaining('has lost its index of entry bundles'),
    ]);
  },
);

test('where bundles begin is read again while the prover runs', async () => {
  const prover = prove(EVENTS);
  await prover.until(({ size }) => size === EVENTS.length);
  const whole = await readFile(inTree('bundles'));
  await rm(inTree('bundles'));
  const again = () => readFile(inTree('bundles')).catch(() => Buffer.alloc(0));
  while (!(await again()).equals(whole)) await sleep(50);
  expect(prover.warnings).toEqual([expect.stringContaining('has lost its index of entry bundles')]);
});

test('where bundles begin is not taken from a log whose events are not those of the leaves', async () => {
  await proved(EVENTS);
  await rm(inTree('bundles'));
  const other = EVENTS.filter((_, index) => index !== 5);
  const prover = prove(other);
  const { trouble } = await prover.until((report) => report.trouble !== undefined);
  expect(trouble).toContain(`leaf 255 does not belong to the event ${EVENTS[256]!.id}`);
});

test('a tile and a bundle that were cut are told by their names', async () => {
  for (const file of ['tile/0/001.p/44', 'tile/entries/001.p/44']) {
    await rm(trees, { recursive: true, force: true });
    const trouble = await troubleWith(() => changeIn(file, (all) => all.subarray(0, 100)));
    expect(trouble).toContain(`${file} of the transparency log is damaged`);
  }
});

test('a checkpoint that is gone is signed again, one that was changed is told', async () => {
  await proved(EVENTS);
  const before = await newestCheckpoint();
  await rm(inTree('checkpoint'));
  await proved(EVENTS);
  expect(await newestCheckpoint()).toEqual(before);
  await changeIn('checkpoint', (all) => void (all[3]! ^= 1));
  const { trouble } = await prove(EVENTS).until((report) => report.trouble !== undefined);
  expect(trouble).toContain('or the checkpoint from a backup where that was damaged');
});

test('no proof is made of tiles that were changed, though nobody else reads them', async () => {
  await proved(EVENTS);
  const reader = openOneFileTree(trees);
  const { position } = EVENTS[3]!;
  const event = { position, hash: hashOf(EVENTS[3]!) };
  expect((await proveEvent(reader, event, 0))?.leaf.index).toBe(3);
  await changeIn('tile/0/000', (all) => void (all[40]! ^= 1));
  await expect(proveEvent(reader, event, 0)).rejects.toMatchObject({
    code: 'proof_invalid',
    message: expect.stringContaining("don't lead from leaf 3 to its checkpoint of 700"),
  });
});

test.each(['current', '_current.tmp'])('a tree may have the name %s', async (origin) => {
  await proved(EVENTS.slice(0, 3), { origin });
  expect(await newestCheckpoint(key, `${origin}/${LOG_ID}`)).toMatchObject({ size: 3 });
});

test('a state that says nothing is told', async () => {
  const trouble = await troubleWith(() => writeFile(inTree('state.json'), 'null'));
  expect(trouble).toContain('state.json does not say how large the tree is');
});

test('a state that says another event than the last leaf is of is refused', async () => {
  for (const { events, size } of [
    { events: EVENTS.slice(0, 300), size: 300 },
    { events: EVENTS.slice(0, 256), size: 256 },
  ]) {
    await rm(trees, { recursive: true, force: true });
    await proved(events);
    const state = JSON.parse(await readFile(inTree('state.json'), 'utf8'));
    const { position, id: event_id } = EVENTS[size - 50]!;
    const event_hash = hashOf(EVENTS[size - 50]!);
    state.checkpoint = { ...state.checkpoint, position, event_id, event_hash };
    await writeFile(inTree('state.json'), JSON.stringify(state));
    const prover = prove(EVENTS);
    const { trouble } = await prover.until((report) => report.trouble !== undefined);
    expect(trouble).toContain(`its last leaf does not belong to the event ${event_id}`);
    expect(await newestCheckpoint()).toMatchObject({ size });
    await prover.stop();
  }
});

test('an entry that was changed is told before it gets into the full bundle', async () => {
  const trouble = await troubleWith(async () => {
    const file = inTree('tile/entries/001.p/44');
    const entries = await readFile(file, 'latin1');
    await writeFile(file, entries.replace('"index":270', '"index":271'), 'latin1');
  });
  expect(trouble).toContain('Entry 270 of the transparency log has not the hash');
});

test('the state of another log is refused', async () => {
  const other = { ...EVENTS[1]!, id: 'another' };
  const trouble = await troubleWith(async () => {
    const state = JSON.parse(await readFile(inTree('state.json'), 'utf8'));
    state.checkpoint.event_id = other.id;
    await writeFile(inTree('state.json'), JSON.stringify(state));
  });
  expect(trouble).toContain('The log has changed: the event another was followed up to');
});

test('a log that is shorter than its tree is refused', async () => {
  await proved(EVENTS);
  const prover = prove(EVENTS.slice(0, 300));
  const { trouble } = await prover.until((report) => report.trouble !== undefined);
  expect(trouble).toContain('The log has changed');
  expect(await newestCheckpoint()).toMatchObject({ size: EVENTS.length });
});

test('another key is refused, and says what to do', async () => {
  const other = signingKey();
  const trouble = await troubleWith(async () => undefined, { signingKeys: () => [other] });
  expect(trouble).toContain('was not signed by a key of the signing key file');
  expect(trouble).toContain('set LOG_ORIGIN to another name');
});

test('keys are changed by way of a checkpoint that both have signed', async () => {
  const next = signingKey();
  await proved(EVENTS.slice(0, 300));
  await proved(EVENTS.slice(0, 400), { signingKeys: () => [key, next] });
  expect(await newestCheckpoint(key)).toEqual(await newestCheckpoint(next));
  await proved(EVENTS, { signingKeys: () => [next] });
  expect(await newestCheckpoint(next)).toMatchObject({ size: EVENTS.length });
});

test('another origin begins another tree, and the old one stays', async () => {
  await proved(EVENTS.slice(0, 300));
  const before = await readFile(inTree('checkpoint'));
  await proved(EVENTS, { origin: 'example.com/log', signingKeys: () => [signingKey()] });
  const reader = openOneFileTree(trees);
  expect((await reader.readCheckpoint())!.split('\n')[0]).toBe(`example.com/log/${LOG_ID}`);
  expect(await readFile(inTree('checkpoint'))).toEqual(before);
});

test('a log that was copied, with other positions, has the same tree once that is made again', async () => {
  await proved(EVENTS);
  const before = await newestCheckpoint();
  const copied = EVENTS.map((event) => ({
    ...event,
    position: `1${event.position}` as StoredEvent['position'],
  }));
  const prover = prove(copied);
  const { trouble } = await prover.until((report) => report.trouble !== undefined);
  expect(trouble).toContain('The log has changed');
  await prover.stop();
  await rm(trees, { recursive: true });
  await proved(copied);
  expect(await newestCheckpoint()).toEqual(before);
});

test('a disk that takes nothing is told, and it goes on when it does again', async () => {
  await mkdir(join(trees, ORIGIN), { recursive: true });
  await writeFile(inTree('tile'), 'in the way');
  const prover = prove(EVENTS);
  const { trouble } = await prover.until((report) => report.trouble !== undefined);
  expect(trouble).toContain("The files of the transparency log can't be read or written");
  await rm(inTree('tile'));
  await prover.until(({ size }) => size === EVENTS.length);
  expect(prover.reports.at(-1)!.trouble).toBeUndefined();
});

test('it stands by until it has its turn, and is active before it has signed anything', async () => {
  const turn = Promise.withResolvers<void>();
  const opened = openFileTileTrees(trees);
  const prover = prove([], {
    async acquireLeadership() {
      await turn.promise;
      return { ...opened, lost: new AbortController().signal, close: async () => undefined };
    },
  });
  await prover.until(({ state }) => state === 'standing_by');
  turn.resolve();
  // Of an empty log nothing is signed.
  expect(await prover.until(({ state }) => state === 'active')).toEqual({ state: 'active' });
});

test('an empty log is waited for, and an event is signed though none follows it', async () => {
  const store = await openSqliteEventStore({ folder });
  const prover = startProver(store, trees, { signingKeys: () => [key] });
  provers.push(prover);
  await sleep(100);
  await append(store, EVENTS.slice(0, 1));
  await prover.until(({ size }) => size === 1);
  await append(store, EVENTS.slice(1, 3));
  await prover.until(({ size }) => size === 3);
  await prover.stop();
  await store.close();
});

test('leaves wait until the read models are filled', async () => {
  const filled = Promise.withResolvers<void>();
  const prover = prove(EVENTS.slice(0, 3), { untilFilled: () => filled.promise });
  await sleep(500);
  expect(prover.reports).toEqual([]);
  filled.resolve();
  await prover.until(({ size }) => size === 3);
});

test('a log that was declared restored gets another tree', async () => {
  const store = await openSqliteEventStore({ folder });
  const prover = startProver(store, trees, { signingKeys: () => [key] });
  provers.push(prover);
  await append(store, EVENTS.slice(0, 3));
  await prover.until(({ size }) => size === 3);
  const declared = await declareRestored(store);
  await prover.until(({ size }) => size === 4);
  expect(await newestCheckpoint(key, `turnlog/${declared}`)).toMatchObject({ size: 4 });
  const before = await readFile(inTree('checkpoint'), 'utf8');
  expect(before.split('\n')[1]).toBe('3');
  await prover.stop();
  await store.close();
});

test('it publishes what its witnesses cosign, and goes on without those that say nothing', async () => {
  const signer = noteSigner('w.test/w', signingKey(), COSIGNATURE);
  const asked: CosignRequest[] = [];
  const honest: Witness = {
    key: signer.key,
    async addCheckpoint(request) {
      asked.push(request);
      return { lines: signatureLine(cosign(parseNote(request.checkpoint).text, signer, 1)) };
    },
  };
  const prover = prove(EVENTS, { witnesses: { wanted: 1, witnesses: [honest] } });
  await prover.until(({ size }) => size === EVENTS.length);
  await prover.stop();
  expect(asked.at(-1)!.checkpoint).toContain(`\n${EVENTS.length}\n`);
  const note = (await openOneFileTree(trees).readCheckpoint())!;
  expect(note).toMatch(/\n— w\.test\/w [^\n]+\n$/);
  expect(verifyCosignature(parseNote(note).text, signer.key, parseNote(note).signatures[1]!)).toBe(
    1,
  );
  await rm(trees, { recursive: true });
  const silent: Witness = {
    key: signer.key,
    addCheckpoint: async () => ({ trouble: 'is away' }),
  };
  const alone = prove(EVENTS, { witnesses: { wanted: 1, witnesses: [silent] } });
  await alone.until(({ size }) => size === EVENTS.length);
  expect(alone.warnings).toContain('a witness does not cosign');
});

test('a clock that goes back changes nothing but what is told of the time', async () => {
  let now = Date.parse('2026-01-02');
  const clock = { now: () => (now -= 86_400_000) };
  await proved(EVENTS.slice(0, 300), { clock });
  await proved(EVENTS, { clock });
  expect(await newestCheckpoint()).toMatchObject({ size: EVENTS.length });
});

async function append(
  store: Awaited<ReturnType<typeof openSqliteEventStore>>,
  events: readonly StoredEvent[],
): Promise<void> {
  for (const { stream, ...event } of events) await store.append(stream, 'no_stream', [event]);
}
