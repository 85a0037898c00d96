/**
 * What the EventStoreDB node says to fixed requests, against what real servers said
 * (`eventstoredb-node/records/`). With EVENTSTOREDB_URL a fresh real server is asked instead: the
 * first part without TLS, the refusals with it.
 */
import { afterAll, describe, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startEventStoreDbProcess } from '../../support/eventstoredb/eventStoreDbProcess.ts';
import { ofNode, ofOneNode, ofServer } from '../../support/eventstoredb/recordedAnswers.ts';
import { temporaryFolder } from '../../support/sqlite/sqliteEventStore.ts';

const RECORDS = new URL('../../support/eventstoredb-node/records/', import.meta.url);
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const TIMEOUT_MS = 180_000;
/** Long enough for the copies of an append to come meanwhile, also from a busy machine. */
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

/** What a node of this version says, from its start to its end. */
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
  // The recorders mostly wait, so all versions are asked at once.
  const saying = new Map(
    recorded('.txt').map((version) => [version, playOnNode('record.mjs', version, false)]),
  );
  const allSaid = Promise.allSettled(saying.values());
  const refuse = (version: string): Promise<string> =>
    allSaid.then(() => playOnNode('record-refusals.mjs', version, true));
  const refusing = new Map(recorded('.refusals.txt').map((version) => [version, refuse(version)]));
  afterAll(() => Promise.allSettled([...saying.values(), ...refusing.values()]), TIMEOUT_MS);

  describe('the EventStoreDB node', () => {
    test.each([...saying])(
      'says what a server of %s said',
      async (version, said) => {
        expect(ofNode(await said)).toEqual(ofNode(record(`${version}.txt`)));
      },
      TIMEOUT_MS,
    );

    test.each([...refusing])(
      'refuses with TLS what a server of %s refused',
      async (version, said) => {
        expect(ofOneNode(await said)).toEqual(ofOneNode(record(`${version}.refusals.txt`)));
      },
      TIMEOUT_MS,
    );
  });
} else if (url.includes('tls=false')) {
  const said = await play('record.mjs', url);
  const [, version = 'unknown'] = /^ {4}(\d+\.\d+\.\d+)/m.exec(said) ?? [];
  const name = `the server at EVENTSTOREDB_URL says what one of ${version} said`;
  const compare = (): void => expect(ofServer(said)).toEqual(ofServer(record(`${version}.txt`)));
  if (recorded('.txt').includes(version)) test(name, compare);
  else test.skip(`${name}: there is no record of it`, () => undefined);
} else {
  test(
    'the server at EVENTSTOREDB_URL refuses what all servers refused',
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
