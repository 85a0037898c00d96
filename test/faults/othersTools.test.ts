/** Tools of others, unmodified, look at the transparency log of a service, and cosign it. */
import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { run } from '../../infra/local/kafka/jars.ts';
import { createHttpWitness } from '../../infra/witness/httpWitness.ts';
import { startCosigner } from '../../services/followers/prover/cosigner.ts';
import { createWitnessesHealth } from '../../services/followers/prover/witnesses.ts';
import { createLogger } from '../../shared/lib/logger.ts';
import type { WitnessesHealth } from '../../shared/health/health.ts';
import { parseCheckpoint } from '../../shared/transparency/tlog/checkpoint.ts';
import { verifyCosignature } from '../../shared/transparency/tlog/cosignature.ts';
import { parseNote, signNote } from '../../shared/transparency/tlog/note.ts';
import { formatVkey, noteSigner, parseVkey } from '../../shared/transparency/tlog/noteKeys.ts';
import { consistencyProof } from '../../shared/transparency/tlog/proofs.ts';
import {
  SSH_AGENT,
  startLitewitness,
  type Litewitness,
} from '../support/processes/go/litewitness.ts';
import { goTools, hasGo, withoutGo } from '../support/processes/go/tools.ts';
import { apiClient, TEST_KEY } from '../support/http/service.ts';
import { withoutProgram } from '../support/processes/debianProgram.ts';
import { eventually } from '../support/processes/operator.ts';
import { startServerProcess } from '../support/processes/serverProcess.ts';
import { orSkip } from '../support/processes/recipes/installed.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';
import { ORIGIN, testLog, type TestLog } from '../support/servers/witness/log.ts';
import {
  startTestWitness,
  writeWitnessesFile,
  type TestWitness,
} from '../support/servers/witness/witness.ts';

const tools =
  hasGo() && SSH_AGENT !== undefined
    ? await orSkip(goTools, 'The tools of others are built with Go, from modules of its proxy.')
    : undefined;

function litewitnessTests(folder: string): void {
  describe('litewitness', () => {
    let log: TestLog;
    let real: Litewitness;
    let double: TestWitness;
    beforeAll(async () => {
      log = await testLog(600);
      real = await startLitewitness(folder, 'lite.test/w');
      real.addLog(ORIGIN, log.vkey);
      double = await startTestWitness('double.test/w', () => log.vkey);
    });
    afterAll(async () => {
      await real.close();
      await double.close();
    });

    test('cosigns one checkpoint after the other, also when it has forgotten them', async () => {
      const { onReport, health } = createWitnessesHealth();
      const { publish, close } = startCosigner({
        wanted: 1,
        witnesses: [createHttpWitness(real)],
        tiles: log.tiles,
        served: undefined,
        onReport,
        logger: createLogger('silent'),
      });
      for (const size of [1, 2, 255, 256, 257, 257, 599, 600]) {
        await publish(await log.checkpoint(size));
        expect([size, health()]).toEqual([size, { wanted: 1, reached: 1, missing: [] }]);
        expect(real.sizeOf(ORIGIN)).toBe(size);
      }
      real.forget(ORIGIN);
      await publish(await log.checkpoint(600));
      expect([health()?.reached, real.sizeOf(ORIGIN)]).toEqual([1, 600]);
      await close();
      real.forget(ORIGIN);
    });

    test('says the same as the witness of the other tests', async () => {
      const hashes = async (from: number, to: number): Promise<string> =>
        (await consistencyProof(log.tiles, from, to))
          .map((hash) => `${Buffer.from(hash).toString('base64')}\n`)
          .join('');
      const { privateKey } = generateKeyPairSync('ed25519');
      const forged = signNote(`${ORIGIN}\n300\n${'A'.repeat(43)}=\n`, [
        noteSigner(ORIGIN, privateKey),
      ]);
      const grown = await hashes(100, 300);
      const note = await log.checkpoint(300);
      const asked: readonly (readonly [string, string])[] = [
        ['nothing', ''],
        ['no request', 'hello'],
        ['a note alone', note],
        ['no empty line', `old 0\n${note.replace('\n\n', '\n')}`],
        ['an old size that is no number', `old x\n\n${note}`],
        ['a negative old size', `old -1\n\n${note}`],
        ['an unknown log', `old 0\n\n${await log.checkpoint(100, 'log.test/other')}`],
        ['a forged signature', `old 0\n\n${forged}`],
        ['an old size when it knows none', `old 5\n\n${await log.checkpoint(100)}`],
        ['the first', `old 0\n\n${await log.checkpoint(100)}`],
        ['the first again', `old 0\n\n${await log.checkpoint(100)}`],
        ['the same again', `old 100\n\n${await log.checkpoint(100)}`],
        ['an old size beyond the new one', `old 301\n\n${note}`],
        ['no proof', `old 100\n\n${note}`],
        ['the proof of another size', `old 100\n${await hashes(101, 300)}\n${note}`],
        ['a hash that is too short', `old 100\nAAAA\n\n${note}`],
        ['a hash that is no base64', `old 100\n${'*'.repeat(44)}\n\n${note}`],
        ['64 hashes', `old 100\n${`${'A'.repeat(43)}=\n`.repeat(64)}\n${note}`],
        ['11 KiB', `old 100\n${'x'.repeat(11 * 1_024)}\n\n${note}`],
        ['growth', `old 100\n${grown}\n${note}`],
        ['growth again', `old 100\n${grown}\n${note}`],
        ['a smaller tree', `old 300\n\n${await log.checkpoint(200)}`],
        ['more', `old 300\n${await hashes(300, 600)}\n${await log.checkpoint(600)}`],
      ];
      const ask = async (url: string, body: string) => {
        const answer = await fetch(`${url}/add-checkpoint`, { method: 'POST', body });
        const said = await answer.text();
        const isSize = answer.status === 409;
        return {
          status: answer.status,
          ...(isSize && { said, type: answer.headers.get('content-type') }),
          ...(answer.status === 200 && { lines: said.split('\n').length }),
        };
      };
      const statuses = new Set<number>();
      for (const [what, body] of asked) {
        const answer = await ask(double.url, body);
        expect([what, answer]).toEqual([what, await ask(real.url, body)]);
        statuses.add(answer.status);
      }
      expect([...statuses].toSorted((a, b) => a - b)).toEqual([200, 400, 403, 404, 409, 422, 500]);
    });
  });
}

/** A service whose log fsck reads and litewitness cosigns. */
async function startWitnessedService(folder: string) {
  const data = await temporaryFolder();
  const witness = await startLitewitness(folder, 'lite.test/w');
  const env = {
    DATA_DIR: data,
    BOOTSTRAP_API_KEY: TEST_KEY,
    LOG_LEVEL: 'warn',
    LOG_ORIGIN: 'log.test/v1/log',
    LOG_WITNESSES_FILE: await writeWitnessesFile(data, [witness]),
  };
  let server = startServerProcess(env);
  let client = apiClient(await server.ready, TEST_KEY);
  let at = await server.ready;

  const stop = async (signal: NodeJS.Signals): Promise<void> => {
    server.kill(signal);
    await server.exited;
  };
  const read = async (path: string): Promise<string> =>
    (await fetch(`${at}/v1/log/${path}`, { headers: { 'x-api-key': TEST_KEY } })).text();
  const origin = (
    await eventually(
      () => read('checkpoint'),
      (note) => note.includes('\n\n'),
    )
  ).split('\n', 1)[0]!;
  const privateKey = createPrivateKey(await readFile(join(data, 'log-signing-key.pem'), 'utf8'));
  const logVkey = formatVkey(noteSigner(origin, privateKey).key);
  const vkeyFile = join(data, 'log.vkey');
  await writeFile(vkeyFile, logVkey);

  return {
    data,
    witness,
    origin,
    logVkey,
    client: () => client,
    checkpoint: () => read('checkpoint'),
    witnesses: async () =>
      (await client.get('/health/ready')).body.data.transparency_log.witnesses as WitnessesHealth,
    /** What fsck says of the log. Of its workers one ends at each mistake, and it waits for the last. */
    fsck: (...more: string[]) =>
      run(
        join(folder, 'fsck'),
        `-ui=false -logtostderr -N 8 -storage_url ${at}/v1/log/ -public_key ${vkeyFile}`
          .split(' ')
          .concat(more),
        FSCK_LIMIT_MS,
      ),
    async restart(signal: NodeJS.Signals, more: Record<string, string> = {}) {
      await stop(signal);
      server = startServerProcess({ ...env, ...more });
      at = await server.ready;
      client = apiClient(at, TEST_KEY);
    },
    async close() {
      await stop('SIGKILL');
      await witness.close();
      await rm(data, { recursive: true });
    },
  };
}

const FSCK_LIMIT_MS = 120_000;
/** Agents are made by the thousand, on a machine that may do much else. */
const TEST_LIMIT_MS = 300_000;
const SUCCESS = /Successfully fsck'd log with size (\d+)/;
const withKey = ['-bearer_token', TEST_KEY];
const sizeIn = (note: string): number => parseCheckpoint(parseNote(note).text).size;

function serviceTests(folder: string): void {
  describe('a running service', () => {
    type Service = Awaited<ReturnType<typeof startWitnessedService>>;
    let service: Service;
    beforeAll(async () => void (service = await startWitnessedService(folder)));
    afterAll(() => service?.close());
    jest.setTimeout(TEST_LIMIT_MS);

    const isCosigned = (note: string): boolean => {
      const { text, signatures } = parseNote(note);
      const key = parseVkey(service.witness.vkey);
      return signatures.some((one) => verifyCosignature(text, key, one) !== undefined);
    };
    const untilCosigned = (): Promise<string> => eventually(service.checkpoint, isCosigned);

    /** Events, up to so many leaves, and a checkpoint that covers them. */
    async function growTo(leaves: number): Promise<void> {
      const agent = { name: 'x', instruction: 'x', model: 'offline-echo' };
      for (let size = sizeIn(await service.checkpoint()); size < leaves; size += 100)
        await Promise.all(
          Array.from({ length: 100 }, () => service.client().post('/v1/agents', agent)),
        );
      await eventually(service.checkpoint, (note) => sizeIn(note) >= leaves);
    }

    test('is not cosigned by a witness that does not know it, says so, and is once it does', async () => {
      const unknown = await eventually(service.witnesses, (said) => said?.missing.length === 1);
      expect(unknown).toMatchObject({ wanted: 1, reached: 0, missing: ['lite.test/w'] });
      service.witness.addLog(service.origin, service.logVkey);
      await untilCosigned();
      const known = await eventually(service.witnesses, ({ reached }) => reached === 1);
      expect(known).toEqual({ wanted: 1, reached: 1, missing: [] });
    });

    test('is one tree to fsck, with full tiles and while it grows, and cosigned at every size', async () => {
      await growTo(1_000);
      const size = sizeIn(await untilCosigned());
      const [, seen] = SUCCESS.exec(await service.fsck(...withKey)) ?? [];
      expect(Number(seen)).toBeGreaterThanOrEqual(size);
      const ended = new AbortController();
      const grown = growTo(size + 1_500).finally(() => ended.abort());
      let looks = 0;
      while (!ended.signal.aborted) {
        expect(await service.fsck(...withKey)).toMatch(SUCCESS);
        looks += 1;
      }
      await grown;
      expect(looks).toBeGreaterThan(0);
      expect(service.witness.sizeOf(service.origin)).toBe(sizeIn(await untilCosigned()));
    });

    test('goes on with its witness after a crash, and after the witness has forgotten', async () => {
      await service.restart('SIGKILL');
      const before = sizeIn(await service.checkpoint());
      await growTo(before + 100);
      await untilCosigned();
      service.witness.forget(service.origin);
      await growTo(sizeIn(await service.checkpoint()) + 100);
      const note = await untilCosigned();
      expect(service.witness.sizeOf(service.origin)).toBe(sizeIn(note));
      expect(await service.fsck(...withKey)).toMatch(SUCCESS);
    });

    test('is read by fsck without a key where it is public, and not where it is not', async () => {
      expect(await service.fsck()).toMatch(/fsck failed: .*401/);
      await service.restart('SIGTERM', { LOG_PUBLIC: 'true' });
      expect(await service.fsck()).toMatch(SUCCESS);
    });

    test('is found out by fsck when a tile or an entry was changed', async () => {
      for (const path of ['tile/0/000', 'tile/entries/001']) {
        const file = join(service.data, 'tlog', service.origin, path);
        const whole = await readFile(file);
        const changed = Buffer.from(whole);
        changed[100]! ^= 1;
        await writeFile(file, changed);
        expect(await service.fsck(...withKey)).toMatch(/fsck failed/);
        await writeFile(file, whole);
        expect(await service.fsck(...withKey)).toMatch(SUCCESS);
      }
    });
  });
}

if (!hasGo()) withoutGo('tools of others');
else if (SSH_AGENT === undefined) withoutProgram('tools of others', 'openssh-client');
else if (tools === undefined) test.skip('tools of others', () => undefined);
else {
  litewitnessTests(tools);
  serviceTests(tools);
}
