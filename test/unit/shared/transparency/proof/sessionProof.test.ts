import { expect, test } from '@jest/globals';
import { createDamagedStreams } from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import { sessionStream } from '../../../../../shared/eventlog/streams.ts';
import { MIB } from '../../../../../shared/lib/units.ts';
import type { ReadOptions } from '../../../../../shared/ports/eventStore.ts';
import { proveSession } from '../../../../../shared/transparency/proof/sessionProof.ts';
import { formatCheckpoint } from '../../../../../shared/transparency/tlog/checkpoint.ts';
import { signNote } from '../../../../../shared/transparency/tlog/note.ts';
import { signer } from '../../../../support/builders/bundles.ts';
import { sessionStarted, toolCalled } from '../../../../support/builders/events.ts';
import { recordHistory } from '../../../../support/builders/history.ts';
import { turnsDuring } from '../../../../support/fakes/loopTurns.ts';
import { treeOfLog } from '../../../../support/fakes/memoryLog.ts';

const STREAM = sessionStream('session_1');
const EVENTS = 300;

/** A session whose reads do not wait, with its transparency log. */
async function provenSession() {
  const { record } = recordHistory();
  const events = [
    record({ stream: STREAM }, sessionStarted()),
    ...Array.from({ length: EVENTS - 1 }, () => record({ stream: STREAM }, toolCalled(1))),
  ];
  const { tiles, heads } = await treeOfLog(events, [EVENTS]);
  const text = formatCheckpoint({ origin: 'turnlog', ...heads[0]! });
  const checkpoint = signNote(text, [signer]);
  const source = {
    store: {
      readStream: async (_stream: string, { direction, from = 0, limit }: ReadOptions) =>
        direction === 'backwards' ? events.slice(-limit) : events.slice(from, from + limit),
      keys: { noteLastEvent: () => undefined },
    },
    damaged: createDamagedStreams(() => undefined),
    readModels: {
      findSession: async () => ({
        session_id: 'session_1',
        account_id: 'acct_1',
        revision: EVENTS - 1,
      }),
    },
    tiles: { ...tiles, readCheckpoint: async () => checkpoint },
  };
  return source as unknown as Parameters<typeof proveSession>[0];
}

test('a page of proofs gives other work turns of the event loop', async () => {
  const source = await provenSession();
  const turns = await turnsDuring(async () => {
    const page = { limit: 1_000, bytes: MIB };
    const { events } = await proveSession(source, 'acct_1', 'session_1', page);
    expect(events.rows.map(({ leaf }) => leaf.index)).toEqual([...Array(EVENTS).keys()]);
  });
  // Before an event is withheld and before it is proven, the time is looked at. Every fifth look
  // yields, for several turns: more than either of them alone.
  expect(turns).toBeGreaterThan(1.2 * EVENTS);
});
