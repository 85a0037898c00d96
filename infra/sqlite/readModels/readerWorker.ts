import { parentPort } from 'node:worker_threads';
import { openGenerationReader, type GenerationReader } from './generationReader.ts';
import type { ReaderQuestion } from './readerThread.ts';
import { readRows, type SqliteRow } from './statements.ts';

let reader: { folder: string; read: GenerationReader } | undefined;

/** The generation's connection, which stays open when a rebuild deletes its files. */
function connect({ folder, generation }: ReaderQuestion): GenerationReader {
  if (reader?.folder === folder && reader.read.generation === generation) return reader.read;
  const read = openGenerationReader(folder, generation);
  reader?.read.close();
  reader = { folder, read };
  return read;
}

function answer(question: ReaderQuestion): SqliteRow[] | undefined {
  try {
    return readRows(connect(question), question);
  } catch {
    // The caller meets the same error on its own connection, or can still read.
    return undefined;
  }
}

parentPort!.on('message', (question: ReaderQuestion) => parentPort!.postMessage(answer(question)));
parentPort!.postMessage('ready');
