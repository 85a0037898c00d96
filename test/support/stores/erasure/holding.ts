import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { eventually } from '../../processes/operator.ts';

/** A text of 16 bytes that stands nowhere by chance. */
export const newMarker = (): string => randomBytes(12).toString('base64url');

/** What base64 makes of a text at each of the three places where it may begin, without the edges. */
const base64Forms = (text: string): string[] =>
  [0, 1, 2].map((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(text)]);
    const from = Math.ceil((before * 8) / 6);
    return bytes.toString('base64').slice(from, Math.floor((bytes.length * 8) / 6));
  });

/** The forms in which a text may be kept. */
export function formsOf(text: string): Buffer[] {
  const utf16 = Buffer.from(text, 'utf16le');
  const hex = Buffer.from(text).toString('hex');
  const base64 = base64Forms(text);
  const base64url = base64.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'));
  return [
    ...[text, hex, hex.toUpperCase(), ...base64, ...base64url].map((form) => Buffer.from(form)),
    utf16,
    Buffer.from(utf16).swap16(),
  ];
}

function* filesIn(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* filesIn(path);
    else if (entry.isFile()) yield path;
  }
}

function bytesOf(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    // A file that goes while the folder is searched holds nothing.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}

/** The files of a folder, and of those in it, whose raw bytes hold any of these. */
export const filesWith = (folder: string, forms: readonly Buffer[]): string[] =>
  [...filesIn(folder)].filter((file) => {
    const bytes = bytesOf(file);
    return forms.some((form) => bytes.includes(form));
  });

/** The same for a text in any form. */
export const filesHolding = (folder: string, text: string): string[] =>
  filesWith(folder, formsOf(text));

/** Expects the text to leave all files soon: the cleanup of the read models waits for readers. */
export async function expectGone(folder: string, text: string): Promise<void> {
  const held = await eventually(
    async () => filesHolding(folder, text),
    (files) => files.length === 0,
  );
  expect(held).toEqual([]);
}
