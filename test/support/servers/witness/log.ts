import { generateKeyPairSync } from 'node:crypto';
import { formatCheckpoint } from '../../../../shared/transparency/tlog/checkpoint.ts';
import { signNote } from '../../../../shared/transparency/tlog/note.ts';
import {
  formatVkey,
  noteSigner,
  type NoteSigner,
} from '../../../../shared/transparency/tlog/noteKeys.ts';
import { rootAt } from '../../../../shared/transparency/tlog/proofs.ts';
import type { Tiles } from '../../../../shared/transparency/tlog/readTiles.ts';
import { treeOf } from '../../fakes/memoryTiles.ts';

/** A log of some leaves that signs checkpoints of any size up to theirs, and keeps what is published. */
export interface TestLog {
  tiles: Tiles & { publish(note: string): Promise<void> };
  vkey: string;
  signer: NoteSigner;
  published: string[];
  checkpoint(size: number, origin?: string): Promise<string>;
}

export const ORIGIN = 'log.test/0d6f6d0e';

export async function testLog(size: number): Promise<TestLog> {
  const { tiles } = await treeOf(
    size,
    Array.from({ length: size }, (_, index) => index + 1),
  );
  const signer = noteSigner(ORIGIN, generateKeyPairSync('ed25519').privateKey);
  const published: string[] = [];
  return {
    tiles: { ...tiles, publish: async (note) => void published.push(note) },
    vkey: formatVkey(signer.key),
    signer,
    published,
    checkpoint: async (leaves, origin = ORIGIN) =>
      signNote(formatCheckpoint({ origin, size: leaves, root: await rootAt(tiles, leaves) }), [
        signer,
      ]),
  };
}
