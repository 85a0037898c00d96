import { createPrivateKey, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';

export const vectorsFolder = new URL('../../vectors/tlog/', import.meta.url);

interface ProofVector {
  Index: number;
  Size: number;
  Hashes: string[];
}

/** What test/vectors/tlog/main.go has written. */
export interface Vectors {
  Keys: { Name: string; Seed: string; Vkey: string }[];
  Notes: { Text: string; Note: string; Vkeys: string[] }[];
  Refused: { Why: string; Note: string }[];
  Trees: { Size: number; Root: string }[];
  Inclusion: ProofVector[];
  Consistency: ProofVector[];
  Paths: { Level: number; Index: number; Width: number; Path: string }[];
}

export const vectors = JSON.parse(
  readFileSync(new URL('vectors.json', vectorsFolder), 'utf8'),
) as Vectors;

/** The private key of 32 bytes in hex. */
export const privateKeyOf = (seed: string): KeyObject =>
  createPrivateKey({
    key: Buffer.from(`302e020100300506032b657004220420${seed}`, 'hex'),
    type: 'pkcs8',
    format: 'der',
  });
