import { parentPort } from 'node:worker_threads';
import {
  measureProcessorTime,
  type TimedAnswer,
} from '../../../../shared/lib/time/processorTime.ts';
import { openGenerationReader, type GenerationReader } from '../generationReader.ts';
import type { ReaderQuestion } from './readerThread.ts';
import { readRows, type SqliteRow } from '../statements.ts';

/** An open connection keeps the files of a deleted generation on the disk. */
const IDLE_MS = 5_000;

let reader: { folder: string; read: GenerationReader } | undefined;
let idle: NodeJS.Timeout | undefined;

function disconnect(): void {
  reader?.read.close();
  reader = undefined;
}

/** The connection to the generation. */
function connect({ folder, generation }: ReaderQuestion): GenerationReader {
  if (reader?.folder === folder && reader.read.generation === generation) return reader.read;
  disconnect();
  const read = openGenerationReader(folder, generation);
  reader = { folder, read };
  return read;
}

function answer(question: ReaderQuestion): TimedAnswer<SqliteRow[]> | undefined {
  clearTimeout(idle);
  try {
    return measureProcessorTime(() => readRows(connect(question), question));
  } catch {
    // The caller meets the same error on its own connection, or can still read.
    return undefined;
  } finally {
    idle = setTimeout(disconnect, IDLE_MS).unref();
  }
}

parentPort!.on('message', (question: ReaderQuestion) =>
  parentPort!.postMessage(measureProcessorTime(() => answer(question))),
);
parentPort!.postMessage('ready');
