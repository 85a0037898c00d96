/** A witness lies: it says that it has cosigned another tree than the one that the others know. */
import { rm } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  startTestWitness,
  writeWitnessesFile,
  type TestWitness,
} from '../../support/servers/witness/witness.ts';
import { eventually } from '../../support/processes/operator.ts';
import {
  deployments,
  sizeOf,
  type Deployment,
  type RunningDeployment,
} from '../../support/stores/forger/deployments.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

/** By what is said of the known tree: the size that a witness answers with, and the finding. */
const LIES: [string, (size: number) => number, string][] = [
  ['another root', (size) => size, 'has cosigned a checkpoint of the same size with another root'],
  ['more entries', (size) => size + 1_000, 'knows a checkpoint of'],
];

describe.each(await deployments())(
  '$name with three witnesses, of which two count',
  ({ openSigned }) => {
    let deployment: Deployment;
    let folder: string;
    let witnesses: TestWitness[];
    let env: Record<string, string>;
    beforeEach(async () => {
      let vkey = '';
      [deployment, folder] = await Promise.all([openSigned(), temporaryFolder()]);
      const names = ['first.test/w', 'second.test/w', 'liar.test/w'];
      witnesses = await Promise.all(names.map((name) => startTestWitness(name, () => vkey)));
      env = { LOG_WITNESSES_FILE: await writeWitnessesFile(folder, witnesses, 2) };
      vkey = (await deployment.cli('audit', 'vkey')).out.trim();
      // The witnesses cosign.
      const service = await deployment.start(env);
      await service.ready();
      await service.write();
      await service.stop();
    }, 60_000);
    afterEach(async () => {
      await deployment.close();
      await Promise.all(witnesses.map((witness) => witness.close()));
      await rm(folder, { recursive: true });
    }, 60_000);

    const lie = (witness: TestWitness, sizeSaid: (size: number) => number): void =>
      witness.use((request) => {
        const size = sizeSaid(sizeOf(request.slice(request.indexOf('\n\n') + 2)));
        return { status: 409, type: 'text/x.tlog.size', body: `${size}\n` };
      });

    /** A replica that knows no witness reports the doubt of one that does, until that one ends. */
    async function expectSharedDoubt(service: RunningDeployment, doubt: string): Promise<void> {
      const api = await deployment.start({}, 'api');
      const doubtOf = async () =>
        (await api.health()).body.data?.transparency_log?.doubt as unknown;
      expect(await eventually(doubtOf, (found) => found !== undefined)).toBe(doubt);
      const { status, transparency_log } = (await api.health()).body.data;
      expect([status, transparency_log.state]).toEqual(['degraded', 'standing_by']);
      await service.stop();
      expect(await eventually(doubtOf, (found) => found === undefined)).toBeUndefined();
      await api.stop();
    }

    test.each(LIES)(
      'starts, and names the one that says %s; two that say so hold the start',
      async (_what, sizeSaid, finding) => {
        const [, second, liar] = witnesses;
        lie(liar!, sizeSaid);
        const verified = await deployment.cliWith(env, 'audit', 'verify');
        const outvoted = /Outvoted by the other witnesses: .*the witness liar\.test\/w (.*)/;
        expect([verified.code, outvoted.exec(verified.out)?.[1]]).toEqual([
          0,
          expect.stringContaining(finding),
        ]);
        const service = await deployment.start(env);
        await service.ready();
        const doubt = (await service.health()).body.data.transparency_log.doubt as string;
        expect(doubt).toContain(`the witness liar.test/w ${finding}`);
        expect(service.logged()).toContain('"level":"warn"');
        expect(service.logged()).toContain(`"msg":${JSON.stringify(doubt)}`);
        await service.write();
        if ('DATABASE_URL' in deployment.env) await expectSharedDoubt(service, doubt);
        else await service.stop();

        for (const witness of [second!, liar!]) lie(witness, sizeSaid);
        expect(await deployment.cliWith(env, 'audit', 'verify')).toMatchObject({
          code: 1,
          out: expect.stringContaining(finding),
        });
        const held = await deployment.start(env);
        expect((await held.waiting('The log')).body.error).toContain(finding);
        await held.stop();
      },
      120_000,
    );
  },
);
