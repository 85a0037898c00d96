import type { SessionEvent } from '../../sessions/events.ts';
import { sessionErasedError } from '../../erasure/errors.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { readPage } from '../../eventlog/reading/readWhole.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import type { DecodedEvent } from '../../eventlog/reading/wholeStream.ts';
import { yieldToEventLoop } from '../../lib/concurrency/yieldToEventLoop.ts';
import { LIMITS } from '../../limits.ts';
import type { TurnEnded, WholeTurn } from '../comparison/turnPair.ts';

/** Events read at a time, because their texts may be large. */
const GROUP = 32;

/** Revisions of a session's stream, both inclusive. */
interface Stretch {
  from: number;
  upTo: number;
}

async function* eventsOf(
  source: StreamSource,
  sessionId: string,
  { from, upTo }: Stretch,
): AsyncGenerator<DecodedEvent> {
  for (let next = from; next <= upTo;) {
    const group = await readPage(source, sessionStream(sessionId), {
      direction: 'forwards',
      from: next,
      limit: Math.min(GROUP, upTo - next + 1),
      maxBytes: LIMITS.replays.pageBytes,
    });
    if (group.some(({ recorded }) => recorded.erased)) throw sessionErasedError();
    yield* group;
    const last = group.at(-1);
    if (!last) return;
    next += group.length;
    // Reads of an embedded log don't wait: a long session would keep the event loop busy.
    if (next <= upTo) await yieldToEventLoop(last.recorded.metadata.account_id);
  }
}

const isEnd = (event: SessionEvent): event is TurnEnded =>
  event.type === 'session.turn_completed.v1' ||
  event.type === 'session.turn_failed.v1' ||
  event.type === 'session.turn_interrupted.v1';

/**
 * Yields the turns that began in a range of a session with their texts, oldest first. Keeps at most
 * one turn and a page of events in memory. Only the last turn may be open.
 */
export async function* readWholeTurns(
  source: StreamSource,
  sessionId: string,
  stretch: Stretch,
): AsyncGenerator<WholeTurn> {
  let open: WholeTurn | undefined;
  let compactions: WholeTurn['compactions'] = [];
  for await (const { recorded, event: domainEvent } of eventsOf(source, sessionId, stretch)) {
    const event = domainEvent as SessionEvent;
    const { revision } = recorded;
    const { recorded_at, hash } = recorded.metadata;
    if (event.type === 'session.erased.v1') throw sessionErasedError();
    if (event.type === 'session.compacted.v1') compactions.push(event.data);
    if (event.type === 'session.turn_started.v1') {
      open = {
        started: event.data,
        compactions,
        calls: [],
        end: undefined,
        revision,
        hash,
        recorded_at,
      };
      compactions = [];
    }
    if (event.type === 'session.tool_called.v1') open?.calls.push(event.data);
    if (!open || !isEnd(event)) continue;
    yield { ...open, end: event, revision, hash, recorded_at };
    open = undefined;
  }
  if (open) yield open;
}
