import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { createHttpWitness } from '../../../infra/witness/httpWitness.ts';
import { openKeptCheckpoints } from '../../../infra/witness/keptCheckpoints.ts';
import type { WitnessesFile } from '../../../infra/witness/witnessesFile.ts';
import type { Config } from '../../../shared/lib/config/config.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { OutsideEvidence } from '../../../shared/transparency/kept/compareTree.ts';
import type { StoredTrees } from '../../../shared/transparency/ownTree.ts';
import { readSigningKeys } from '../signingKeys.ts';

const ADDRESS = /^https?:\/\//;

/** The places of LOG_KEPT_CHECKPOINTS; paths are made absolute. */
const keptLocations = ({ LOG_KEPT_CHECKPOINTS: locations }: Config): string[] =>
  locations === undefined
    ? []
    : locations.split(',').map((text) => (ADDRESS.test(text) ? text : resolve(text)));

/** Those that a start and `audit verify` compare the transparency log with. */
export const openOutsideEvidence = (
  config: Config,
  witnesses: WitnessesFile | undefined,
): OutsideEvidence => ({
  witnesses:
    witnesses?.witnesses.map((entry) => createHttpWitness(entry, LIMITS.witness.startMs)) ?? [],
  wanted: witnesses?.wanted ?? 0,
  kept: keptLocations(config).map(openKeptCheckpoints),
});

/** The stored trees of a process; without its key file they are compared as far as possible. */
export const storedTrees = (
  { origin, keyFile }: { origin: string; keyFile: string | undefined },
  treeOf: StoredTrees['treeOf'],
  declares = false,
): StoredTrees => ({
  declares,
  name: origin,
  treeOf,
  signingKeys: () => (keyFile !== undefined && existsSync(keyFile) ? readSigningKeys(keyFile) : []),
});
