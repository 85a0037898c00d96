import { describe, expect, test } from '@jest/globals';
import {
  formatCursor,
  readEndOfFeed,
  isCursor,
  openCursor,
} from '../../../../shared/feed/cursor.ts';
import {
  createCheckpoint,
  readLogIdentity,
  type IdentifiableLog,
} from '../../../../shared/eventlog/identity/logIdentity.ts';
import { logStream } from '../../../../shared/eventlog/streams.ts';
import type { Position, StoredEvent } from '../../../../shared/ports/eventStore.ts';
import { accountOpened, agentCreated } from '../../../support/builders/events.ts';
import { positionOf, recordHistory } from '../../../support/builders/history.ts';

/** A log of these events, whose end may be others' events. */
const logOf = (events: readonly StoredEvent[], end = events.at(-1)?.position): IdentifiableLog => ({
  firstEvent: async () => events[0],
  head: async () => end,
  eventAt: async (position: Position) => events.find((event) => event.position === position),
  readStream: async (stream) => events.filter((event) => event.stream === stream),
});

function fiveEvents(): StoredEvent[] {
  const { record } = recordHistory();
  return Array.from({ length: 5 }, (_, index) =>
    record({ stream: `agent-agent_${index}` }, index === 0 ? accountOpened() : agentCreated()),
  );
}

async function cursorAt(events: readonly StoredEvent[], index: number): Promise<string> {
  return formatCursor(createCheckpoint((await readLogIdentity(logOf(events)))!, events[index]!));
}

describe('a cursor', () => {
  test('leads back to its event, and tells neither its id, nor its hash, nor its stream', async () => {
    const events = fiveEvents();
    const cursor = await cursorAt(events, 2);
    expect(isCursor(cursor)).toBe(true);
    expect(await openCursor(logOf(events), cursor)).toMatchObject({
      position: events[2]!.position,
      event_id: events[2]!.id,
    });
    const { hash } = JSON.parse(events[2]!.metadata) as { hash: string };
    for (const secret of [events[2]!.id, hash, 'agent'])
      expect(Buffer.from(cursor.slice(17), 'base64url').toString('hex') + cursor).not.toContain(
        secret.replaceAll('-', '').slice(0, 8),
      );
  });

  test('of a place that holds no event of ours is one as well, as long as the log reaches it', async () => {
    const events = fiveEvents();
    const end = positionOf(9);
    const { cursor } = await readEndOfFeed(logOf(events, end));
    expect(await openCursor(logOf(events, positionOf(12)), cursor!)).toBe(end);
    await expect(openCursor(logOf(events, positionOf(8)), cursor!)).rejects.toMatchObject({
      code: 'log_changed',
    });
  });

  test('of an event that the log has lost is refused aloud, until somebody has declared so', async () => {
    const events = fiveEvents();
    const cursor = await cursorAt(events, 4);
    const cutBack = events.slice(0, 3);
    await expect(openCursor(logOf(cutBack), cursor)).rejects.toMatchObject({
      code: 'log_changed',
      retriable: true,
    });
    const root = events[0]!.id;
    const declared = recordHistory(3).record(
      { stream: logStream(root) },
      { type: 'log.restore_accepted.v1', data: { replaces: [root], reason: 'a test' } },
    );
    const restored = logOf([...cutBack, declared]);
    await expect(openCursor(restored, cursor)).rejects.toMatchObject({ code: 'position_unknown' });
    const kept = await cursorAt(events, 1);
    expect(await openCursor(restored, kept)).toMatchObject({ event_id: events[1]!.id });
  });

  test('of another log with an event at that position is refused', async () => {
    const cursor = await cursorAt(fiveEvents(), 2);
    await expect(openCursor(logOf(fiveEvents()), cursor)).rejects.toMatchObject({
      code: 'position_unknown',
    });
  });
});
