import { EventEmitter } from 'node:events';
import { describe, expect, jest, test } from '@jest/globals';
import type streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type {
  HostClient,
  ReadCall,
} from '../../../../../infra/eventstoredb/connection/hostClient.ts';
import type { StoreLogger } from '../../../../../infra/eventstoredb/connection/troubleLog.ts';
import {
  createLogVerifier,
  type LogVerifier,
} from '../../../../../infra/eventstoredb/subscribe/logVerifier.ts';
import { toEventPosition } from '../../../../../infra/eventstoredb/read/positions.ts';
import type { ReadResponse } from '../../../../../infra/eventstoredb/read/readResponse.ts';
import type { Position } from '../../../../../shared/ports/eventStore.ts';

interface LogRecord {
  commit: number;
  isJson?: boolean;
}

const at = (commit: number): Position => toEventPosition(BigInt(commit));

const response = ({ commit, isJson = true }: LogRecord): ReadResponse => ({
  event: {
    id: `event-${commit}`,
    stream: 'session-s',
    revision: 0,
    commit,
    type: 'happened',
    isJson,
    data: '',
    metadata: '',
    bytes: 0,
  },
});

/** A call that answers with the records; without records it never answers. */
function callOf(records: readonly LogRecord[] | undefined): ReadCall {
  const call = new EventEmitter();
  if (records) {
    setImmediate(() => {
      for (const record of records) call.emit('data', response(record));
      call.emit('end');
    });
  }
  const nothing = (): undefined => undefined;
  return Object.assign(call, { cancel: nothing, pause: nothing, resume: nothing });
}

/** A verifier of a log that ends at `end`. A read of Turnlog's streams returns `ours`. */
function verifierOf({
  end,
  ours,
  limitMs = 1_000,
  logger,
}: {
  end: number | undefined;
  ours: LogRecord[];
  limitMs?: number;
  logger?: StoreLogger;
}): LogVerifier {
  const client = {
    openRead: (request: streamsPb.ReadReq) =>
      Promise.resolve(
        callOf(
          end === undefined
            ? undefined
            : request.getOptions()?.hasFilter()
              ? ours
              : [{ commit: end }],
        ),
      ),
  } as unknown as HostClient;
  const connection = {
    client,
    recordActivity: () => undefined,
    lost: new AbortController().signal,
    silenceLimitMs: () => 1_000,
  };
  return createLogVerifier({
    connection,
    limitMs,
    requiresLeader: true,
    signal: new AbortController().signal,
    logger,
  });
}

describe('an idle subscription', () => {
  test('advances to the end of the log when no event of Turnlog follows', async () => {
    expect(await verifierOf({ end: 9, ours: [{ commit: 5 }] }).advanceWhileIdle(at(5))).toBe(at(9));
    expect(await verifierOf({ end: 5, ours: [{ commit: 5 }] }).advanceWhileIdle(at(5))).toBe(at(5));
  });

  test('fails when it has not delivered an event of Turnlog by the second check', async () => {
    const verifier = verifierOf({ end: 9, ours: [{ commit: 5 }, { commit: 7 }] });
    expect(await verifier.advanceWhileIdle(at(5))).toBe(at(5));
    await expect(verifier.advanceWhileIdle(at(5))).rejects.toThrow('does not deliver the event at');
  });

  test('does not fail when the event that it lacks is another one at each check', async () => {
    const ours = [{ commit: 6 }];
    const verifier = verifierOf({ end: 9, ours });
    expect(await verifier.advanceWhileIdle(at(5))).toBe(at(5));
    ours[0] = { commit: 7 };
    expect(await verifier.advanceWhileIdle(at(6))).toBe(at(6));
  });

  test('advances past foreign events in streams of Turnlog, but only as far as they were read', async () => {
    const foreign = { isJson: false };
    expect(
      await verifierOf({ end: 9, ours: [{ commit: 7, ...foreign }] }).advanceWhileIdle(at(5)),
    ).toBe(at(9));
    expect(
      await verifierOf({
        end: 9,
        ours: [
          { commit: 6, ...foreign },
          { commit: 7, ...foreign },
        ],
      }).advanceWhileIdle(at(5)),
    ).toBe(at(7));
  });

  test('fails when the log does not answer within the time limit', async () => {
    await expect(
      verifierOf({ end: undefined, ours: [], limitMs: 50 }).advanceWhileIdle(at(5)),
    ).rejects.toThrow('no answer within 50 ms');
  });
});

test('rejects a position beyond the end of the log, and ignores a checkpoint there with one warning', async () => {
  const warn = jest.fn();
  const verifier = verifierOf({ end: 9, ours: [], logger: { warn } });
  await expect(verifier.requireWithinLog(at(10))).rejects.toMatchObject({
    code: 'position_invalid',
  });
  await verifier.requireWithinLog(at(9));
  expect([
    await verifier.isValidCheckpoint(at(9)),
    await verifier.isValidCheckpoint(at(10)),
    await verifier.isValidCheckpoint(undefined),
  ]).toEqual([true, false, false]);
  expect(warn.mock.calls).toEqual([
    [{ checkpoint: at(10) }, expect.stringMatching(/it is ignored$/)],
  ]);
});
