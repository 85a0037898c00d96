import { EventEmitter } from 'node:events';
import { describe, expect, test } from '@jest/globals';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { HostClient, ReadCall } from '../../../../infra/eventstoredb/clientInternals.ts';
import { createLogView, type LogView } from '../../../../infra/eventstoredb/logView.ts';
import { eventPosition } from '../../../../infra/eventstoredb/positions.ts';
import type { Position } from '../../../../shared/ports/eventStore.ts';

interface Recorded {
  place: number;
  contentType?: string;
}

const at = (place: number): Position => eventPosition(BigInt(place));

function response({ place, contentType = 'application/json' }: Recorded): streamsPb.ReadResp {
  const event = new streamsPb.ReadResp.ReadEvent.RecordedEvent()
    .setId(new sharedPb.UUID().setString(`event-${place}`))
    .setStreamIdentifier(new sharedPb.StreamIdentifier().setStreamName(Buffer.from('session-s')))
    .setStreamRevision('0')
    .setCommitPosition(String(place));
  event.getMetadataMap().set('type', 'happened').set('content-type', contentType);
  return new streamsPb.ReadResp().setEvent(new streamsPb.ReadResp.ReadEvent().setEvent(event));
}

/** A call that answers with these records, or never when there are none to answer with. */
function callOf(records: readonly Recorded[] | undefined): ReadCall {
  const call = new EventEmitter();
  if (records) {
    setImmediate(() => {
      for (const record of records) call.emit('data', response(record));
      call.emit('end');
    });
  }
  return Object.assign(call, { cancel: () => undefined, read: () => null, readableLength: 0 });
}

/**
 * The log's view where the last record is at `end`, and a page of our streams from a position holds
 * `ours`.
 */
function viewOf({
  end,
  ours,
  limitMs = 1_000,
}: {
  end: number | undefined;
  ours: readonly Recorded[];
  limitMs?: number;
}): LogView {
  const client = {
    read: (request: streamsPb.ReadReq) =>
      Promise.resolve(
        callOf(
          end === undefined
            ? undefined
            : request.getOptions()?.hasFilter()
              ? ours
              : [{ place: end }],
        ),
      ),
  } as unknown as HostClient;
  const connection = {
    client,
    heard: () => undefined,
    lost: new AbortController().signal,
    patienceMs: () => 1_000,
  };
  return createLogView({
    connection,
    limitMs,
    requiresLeader: true,
    signal: new AbortController().signal,
    logger: undefined,
  });
}

describe('what a quiet subscription is compared with', () => {
  test('is passed over to the end where nothing of ours comes after the position', async () => {
    expect(await viewOf({ end: 9, ours: [{ place: 5 }] }).considered(at(5))).toBe(at(9));
    expect(await viewOf({ end: 5, ours: [{ place: 5 }] }).considered(at(5))).toBe(at(5));
  });

  test('blames it for an event of ours that it has not delivered by the second look', async () => {
    const view = viewOf({ end: 9, ours: [{ place: 5 }, { place: 7 }] });
    expect(await view.considered(at(5))).toBe(at(5));
    await expect(view.considered(at(5))).rejects.toThrow('does not deliver the event at');
  });

  test('passes over what others wrote into our streams, no further than was read', async () => {
    const foreign = { contentType: 'application/octet-stream' };
    expect(await viewOf({ end: 9, ours: [{ place: 7, ...foreign }] }).considered(at(5))).toBe(
      at(9),
    );
    expect(
      await viewOf({
        end: 9,
        ours: [
          { place: 6, ...foreign },
          { place: 7, ...foreign },
        ],
      }).considered(at(5)),
    ).toBe(at(7));
  });

  test('does not hold it up for ever where the log does not answer', async () => {
    await expect(
      viewOf({ end: undefined, ours: [], limitMs: 50 }).considered(at(5)),
    ).rejects.toThrow('no answer within 50 ms');
  });
});

test('a position beyond the end is refused, and a checkpoint there is not used', async () => {
  const view = viewOf({ end: 9, ours: [] });
  await expect(view.requireWithin(at(10))).rejects.toMatchObject({ code: 'position_invalid' });
  await view.requireWithin(at(9));
  expect([await view.holds(at(9)), await view.holds(at(10)), await view.holds(undefined)]).toEqual([
    true,
    false,
    false,
  ]);
});
