/** Tools of others, unmodified, look at a log and cosign it. */
import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createHttpWitness } from '../../infra/witness/httpWitness.ts';
import { startCosigning } from '../../services/prover/cosign.ts';
import { createLogger } from '../../shared/logger.ts';
import { signNote } from '../../shared/tlog/note.ts';
import { noteSigner, parseVkey } from '../../shared/tlog/noteKeys.ts';
import { consistencyProof } from '../../shared/tlog/proofs.ts';
import { SSH_AGENT, startLitewitness, type Litewitness } from '../support/go/litewitness.ts';
import { goTools, hasGo } from '../support/go/tools.ts';
import { withoutProgram } from '../support/processes/debianProgram.ts';
import { orSkip } from '../support/recipes/installed.ts';
import { ORIGIN, testLog, type TestLog } from '../support/witness/log.ts';
import { startTestWitness, type TestWitness } from '../support/witness/witness.ts';

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
      const { publish, health, close } = startCosigning({
        wanted: 1,
        witnesses: [createHttpWitness({ url: real.url, key: parseVkey(real.vkey) })],
        tiles: log.tiles,
        served: undefined,
        logger: createLogger('silent'),
      });
      for (const size of [1, 2, 255, 256, 257, 257, 599, 600]) {
        await publish(await log.checkpoint(size));
        expect([size, health()]).toEqual([
          size,
          { wanted: 1, reached: 1, missing: [], short: undefined },
        ]);
        expect(real.sizeOf(ORIGIN)).toBe(size);
      }
      real.forget(ORIGIN);
      await publish(await log.checkpoint(600));
      expect([health().reached, real.sizeOf(ORIGIN)]).toEqual([1, 600]);
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
      expect([...statuses].toSorted()).toEqual([200, 400, 403, 404, 409, 422, 500]);
    });
  });
}

if (!hasGo()) withoutProgram('tools of others', 'golang-go');
else if (SSH_AGENT === undefined) withoutProgram('tools of others', 'openssh-client');
else if (tools === undefined) test.skip('tools of others', () => undefined);
else litewitnessTests(tools);
