import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readSigningKeys } from '../../services/compose/signingKeys.ts';
import { openOneFileTree } from '../../infra/files/tileReader.ts';
import { parseCheckpoint, type CheckpointText } from '../../shared/transparency/tlog/checkpoint.ts';
import { openNote } from '../../shared/transparency/tlog/note.ts';
import { noteSigner } from '../../shared/transparency/tlog/noteKeys.ts';
import { consistencyProof, rootAt } from '../../shared/transparency/tlog/proofs.ts';
import { verifyConsistency } from '../../shared/transparency/tlog/verify.ts';
import { startScriptedModel, type ScriptedModel } from '../support/fakes/scriptedModel.ts';
import { apiClient, TEST_KEY, writeModelsFile } from '../support/http/service.ts';
import { size } from '../support/jest/size.ts';
import { startServerProcess, type ServerProcess } from '../support/processes/serverProcess.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';

const KILLS = size({ small: 10, full: 200 });
const CLIENTS = 4;

let folder: string;
let data: string;
let model: ScriptedModel;
let env: Record<string, string>;
beforeAll(async () => {
  folder = await temporaryFolder();
  data = join(folder, 'data');
  model = await startScriptedModel(() => ({ text: 'Done.' }));
  env = {
    DATA_DIR: data,
    MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
    BOOTSTRAP_API_KEY: TEST_KEY,
    LOG_LEVEL: 'error',
  };
});
afterAll(async () => {
  await model.close();
  await rm(folder, { recursive: true });
});

/** The checkpoint that is served, verified; undefined before the first. */
async function newestCheckpoint(): Promise<CheckpointText | undefined> {
  const note = await openOneFileTree(join(data, 'tlog')).readCheckpoint();
  if (note === undefined) return undefined;
  const [key] = readSigningKeys(join(data, 'log-signing-key.pem'));
  const origin = note.split('\n')[0]!;
  return parseCheckpoint(openNote(note, [noteSigner(origin, key!).key]).text);
}

function eventsInLog(): number {
  const log = new DatabaseSync(join(data, 'events.db'), { readOnly: true });
  const { count } = log.prepare('SELECT count(*) AS count FROM events').get() as { count: number };
  log.close();
  return count;
}

async function load(url: string): Promise<void> {
  const { post } = apiClient(url, TEST_KEY);
  const agent = { name: 'a', instruction: 'i', model: 'scripted' };
  const { body } = await post('/v1/agents', agent);
  for (;;) await post(`/v1/agents/${body.data.agent_id}/run`, { input: 'hi' });
}

async function killUnderLoad(server: ServerProcess): Promise<void> {
  const url = await server.ready;
  const clients = Array.from({ length: CLIENTS }, () => load(url).catch(() => undefined));
  await sleep(100 + Math.random() * 1_500);
  server.kill('SIGKILL');
  await server.exited;
  await Promise.all(clients);
}

test(
  'killed at any time, every checkpoint continues those before, and the tree comes to cover the log',
  async () => {
    const seen: CheckpointText[] = [];
    const reader = openOneFileTree(join(data, 'tlog'));
    for (let kill = 0; kill < KILLS; kill += 1) {
      await killUnderLoad(startServerProcess(env));
      const head = await newestCheckpoint();
      if (!head) continue;
      expect(Buffer.from(await rootAt(reader, head.size))).toEqual(head.root);
      expect((await reader.state()).size).toBeGreaterThanOrEqual(head.size);
      for (const before of seen) {
        const proof = await consistencyProof(reader, before.size, head.size);
        expect(verifyConsistency(proof, before, head)).toBe(true);
      }
      seen.push(head);
    }
    expect(seen.length).toBeGreaterThan(KILLS / 2);
    const server = startServerProcess(env);
    const { get } = apiClient(await server.ready, TEST_KEY);
    const isCovered = async (): Promise<boolean> => {
      const { transparency_log: log } = (await get('/health/ready')).body.data;
      expect(log.trouble).toBeUndefined();
      return log.size > 0 && log.lag_ms === 0;
    };
    // Turns that were left open are closed after the start: until then there may be more events.
    const isWhole = async (): Promise<boolean> =>
      (await newestCheckpoint())!.size === eventsInLog();
    while (!(await isWhole())) await sleep(50);
    while (!(await isCovered())) await sleep(50);
    server.kill('SIGKILL');
    await server.exited;
    expect((await newestCheckpoint())!.size).toBe(eventsInLog());
    expect(
      (await readFile(join(data, 'log-signing-key.pem'), 'utf8')).match(/BEGIN/g),
    ).toHaveLength(1);
  },
  KILLS * 15_000 + 60_000,
);
