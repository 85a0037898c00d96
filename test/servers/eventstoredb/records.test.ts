/**
 * Compares the answers of the EventStoreDB node to fixed requests with the recorded answers of real
 * servers (`eventstoredb-node/records/`). EVENTSTOREDB_URL names a new real server to compare
 * instead: without TLS for the answers, with TLS for the rejections.
 */
import { afterAll, describe, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startEventStoreDbProcess } from '../../support/servers/eventstoredb/eventStoreDbProcess.ts';
import { ofNode, ofOneNode, ofServer } from '../../support/servers/eventstoredb/recordedAnswers.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const RECORDS = new URL('../../support/servers/eventstoredb-node/records/', import.meta.url);
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const TIMEOUT_MS = 180_000;
/** Long enough for the copies of an append to arrive before it commits, even on a busy machine. */
const COMMIT_MS = 50;

const recorded = (suffix: string): string[] => {
  const names = readdirSync(RECORDS).filter((name) => /^\d/.test(name) && name.endsWith(suffix));
  return names
    .map((name) => name.slice(0, -suffix.length))
    .filter((name) => /^\d+\.\d+\.\d+$/.test(name));
};
const record = (name: string): string => readFileSync(new URL(name, RECORDS), 'utf8');

async function play(script: string, connectionString: string): Promise<string> {
  const file = fileURLToPath(new URL(script, RECORDS));
  const recorder = ['--no-deprecation', file, connectionString];
  return (await promisify(execFile)(process.execPath, recorder, { cwd: ROOT })).stdout;
}

/** Runs a script against a new node of this version. */
async function playOnNode(script: string, version: string, secured: boolean): Promise<string> {
  const folder = await temporaryFolder();
  const node = await startEventStoreDbProcess({ folder, version, secured, commitMs: COMMIT_MS });
  try {
    return await play(script, node.connectionString);
  } finally {
    await node.kill();
    await rm(folder, { recursive: true });
  }
}

const url = process.env['EVENTSTOREDB_URL'];

if (url === undefined) {
  // The recorders mostly wait, so all versions run at once.
  const answers = new Map(
    recorded('.txt').map((version) => [version, playOnNode('record.mjs', version, false)]),
  );
  const allAnswered = Promise.allSettled(answers.values());
  const playRejections = (version: string): Promise<string> =>
    allAnswered.then(() => playOnNode('record-refusals.mjs', version, true));
  const rejections = new Map(
    recorded('.refusals.txt').map((version) => [version, playRejections(version)]),
  );
  afterAll(() => Promise.allSettled([...answers.values(), ...rejections.values()]), TIMEOUT_MS);

  describe('the EventStoreDB node', () => {
    test.each([...answers])(
      'answers like a server of %s',
      async (version, answer) => {
        expect(ofNode(await answer)).toEqual(ofNode(record(`${version}.txt`)));
      },
      TIMEOUT_MS,
    );

    test.each([...rejections])(
      'rejects with TLS like a server of %s',
      async (version, answer) => {
        expect(ofOneNode(await answer)).toEqual(ofOneNode(record(`${version}.refusals.txt`)));
      },
      TIMEOUT_MS,
    );
  });
} else if (url.includes('tls=false')) {
  const said = await play('record.mjs', url);
  const [, version = 'unknown'] = /^ {4}(\d+\.\d+\.\d+)/m.exec(said) ?? [];
  const name = `the server at EVENTSTOREDB_URL answers like a server of ${version}`;
  const compare = (): void => expect(ofServer(said)).toEqual(ofServer(record(`${version}.txt`)));
  if (recorded('.txt').includes(version)) test(name, compare);
  else test.skip(`${name}: there is no record of it`, () => undefined);
} else {
  test(
    'the server at EVENTSTOREDB_URL rejects like a recorded server',
    async () => {
      const said = ofOneNode(await play('record-refusals.mjs', url));
      const records = recorded('.refusals.txt').map((version) =>
        ofOneNode(record(`${version}.refusals.txt`)),
      );
      expect(records).toContainEqual(said);
    },
    TIMEOUT_MS,
  );
}
