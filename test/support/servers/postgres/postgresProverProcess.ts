/**
 * A prover as a process of its own: `<data folder> <database URL> <signing key file>`. Writes a line
 * with each state, and runs until it is killed.
 */
import { writeSync } from 'node:fs';
import { acquireProverLease } from '../../../../infra/postgres/tiles/trees.ts';
import { openSqliteEventLog } from '../../../../infra/sqlite/eventStore/log.ts';
import { readSigningKeys } from '../../../../services/compose/signingKeys.ts';
import { runProver } from '../../../../services/followers/prover/run.ts';

const [folder = '', databaseUrl = '', keyFile = ''] = process.argv.slice(2);
const silent = (): void => undefined;
const log = openSqliteEventLog({ folder });
await runProver({
  log,
  followed: log,
  acquireLeadership: (signal) => acquireProverLease({ databaseUrl, signal, onFailure: silent }),
  origin: 'turnlog',
  signingKeys: () => readSigningKeys(keyFile),
  declareTree: async () => undefined,
  untilCompared: async () => undefined,
  witnesses: { wanted: 0, witnesses: [] },
  onWitnesses: silent,
  onReport: ({ state, size }) => void writeSync(1, `${state} ${size ?? ''}\n`),
  clock: { now: () => Date.now() },
  logger: { info: silent, warn: silent, error: silent },
  signal: new AbortController().signal,
});
