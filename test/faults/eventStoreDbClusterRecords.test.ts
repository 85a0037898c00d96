/**
 * What a cluster of the stand-in's processes refuses, and how, against what clusters of real
 * servers were recorded to say.
 */
import { expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startEventStoreDbClusterProcess } from '../support/servers/eventstoredb/eventStoreDbClusterProcess.ts';
import { ofThreeNodes } from '../support/servers/eventstoredb/recordedAnswers.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';

const RECORDS = new URL('../support/servers/eventstoredb-node/records/', import.meta.url);
const ROOT = fileURLToPath(new URL('../../', import.meta.url));

const recorded = (version: string): string => {
  const record = readFileSync(new URL(`${version}.refusals.txt`, RECORDS), 'utf8');
  const [, threeNodes = ''] = record.split('## three nodes, without TLS');
  return threeNodes;
};

const VERSIONS = ['23.10.6', '24.10.0', '26.1.0'];

test.each(VERSIONS)(
  'a cluster says what one of %s said, with a leader and without',
  async (version) => {
    const folder = await temporaryFolder();
    const cluster = await startEventStoreDbClusterProcess({ folder, version });
    try {
      const recorder = fileURLToPath(new URL('record-refusals.mjs', RECORDS));
      const pids = cluster.pids().map(String);
      const command = [recorder, cluster.connectionString, ...pids];
      const { stdout } = await promisify(execFile)(process.execPath, command, { cwd: ROOT });
      expect(ofThreeNodes(stdout)).toEqual(ofThreeNodes(recorded(version)));
    } finally {
      await cluster.close();
      await rm(folder, { recursive: true });
    }
  },
  90_000,
);
