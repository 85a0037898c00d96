import { DELETED_STREAM, type AppendOutcome, type Expected, type LogRecord } from './types.ts';

interface StreamsView {
  head(stream: string): bigint;
  isSoftDeleted(stream: string): boolean;
  at(stream: string, revision: bigint): LogRecord | undefined;
  byId(stream: string, id: string): LogRecord | undefined;
}

interface Attempt {
  stream: string;
  expected: Expected;
  ids: readonly string[];
}

type Decision = AppendOutcome | { kind: 'write'; first: bigint; softDeleted: boolean };

const alreadyWritten = ({ revision, position }: LogRecord): Decision => ({
  kind: 'success',
  revision,
  position,
  again: true,
});

/**
 * What a server decides about a write: the rules of `IndexWriter.CheckCommit` in EventStore.Core.
 * Ids are compared only where the events would stand (or, without an expected number, within the
 * stream): a server never looks for an id elsewhere.
 */
export function checkCommit(streams: StreamsView, { stream, expected, ids }: Attempt): Decision {
  const current = streams.head(stream);
  const wrong: Decision = { kind: 'wrong_expected_version', current };
  if (current === DELETED_STREAM) return { kind: 'deleted' };
  const softDeleted = streams.isSoftDeleted(stream);
  const write: Decision = { kind: 'write', first: current + 1n, softDeleted };

  if (expected === 'stream_exists') {
    if (softDeleted) return { kind: 'deleted' };
    if (current < 0n) return wrong;
  }
  if (expected === 'any' || expected === 'stream_exists') {
    const found = ids.map((id) => streams.byId(stream, id));
    if (ids.length === 0 || found[0] === undefined) return write;
    const last = found.at(-1);
    return found.includes(undefined) || last === undefined ? wrong : alreadyWritten(last);
  }

  const expectedNumber = expected === 'no_stream' ? -1n : expected;
  if (expectedNumber > current) return wrong;
  if (expectedNumber === current) return write;
  const found = ids.map((id, index) => {
    const record = streams.at(stream, expectedNumber + 1n + BigInt(index));
    return record?.id === id ? record : undefined;
  });
  const last = found.at(-1);
  if (last !== undefined && !found.includes(undefined)) return alreadyWritten(last);
  return expected === 'no_stream' && softDeleted && found[0] === undefined ? write : wrong;
}
