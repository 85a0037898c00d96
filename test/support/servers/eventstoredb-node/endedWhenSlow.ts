import { endOf, openLiveQueue, type LiveQueue } from './liveQueue.ts';
import type { NodeLog } from './log.ts';
import {
  caughtUpResponse,
  checkpointResponse,
  confirmationResponse,
  eventResponse,
} from './messages.ts';
import { FIRST, HEAD, isBefore, PAGE, readPage, turn, type Page, type Source } from './page.ts';
import type { Responder } from './responder.ts';
import type { Followed, Start } from './sources.ts';
import type { TfPosition } from './types.ts';
import { thrownByHandler } from './wireErrors.ts';

/**
 * The place of what follows the record at a start, or the start itself when nothing stands there.
 */
function afterStart(source: Source, start: TfPosition): TfPosition {
  const [named] = source.records(start, 1);
  return named ? source.after(named) : start;
}

/**
 * Follows as a server of 23.10 does: a wrong start fails the call before it is confirmed, no
 * checkpoint ends a catch-up, and a live subscriber that leaves too much waiting is turned out.
 */
export async function endedWhenSlow(
  log: NodeLog,
  followed: Followed,
  responder: Responder,
): Promise<void> {
  const { source, start, interval, isStartValid } = followed;
  const { send, signal, isStuck } = responder;
  if (!isStartValid()) throw thrownByHandler();
  let considered = 0;

  /** Sends a page, and a checkpoint after it when one is due. */
  async function sendPage(page: Page): Promise<void> {
    let place = page.from;
    for (const event of page.events) {
      await send(eventResponse(event));
      place = source.placeOf(event);
    }
    if (page.isEnd || interval === undefined || considered < interval) return;
    considered %= interval;
    await send(checkpointResponse(place));
  }

  /** Two pages may wait: one in the queue of what is live, one on its way out of it. */
  const makesRoom = (waiting: number) =>
    waiting >= 2 * PAGE && isStuck() ? 'not' : 'without a loss';

  /** Goes on live after a place; one that lies beyond the end of the log keeps nothing back. */
  function openLive(from: TfPosition): LiveQueue {
    const end = endOf(source);
    const options = { onWrite: log.onWrite, signal, interval, considered, makesRoom };
    return openLiveQueue(source, isBefore(end, from) ? end : from, options);
  }

  async function catchUp(from: TfPosition): Promise<LiveQueue> {
    for (;;) {
      signal.throwIfAborted();
      const page = readPage(source, from);
      considered += page.considered;
      const live = page.isEnd ? openLive(page.next) : undefined;
      await sendPage(page);
      if (live) return live;
      from = page.next;
      await turn();
    }
  }

  const first = (begin: Start): TfPosition =>
    begin === 'end' || begin.commit === HEAD.commit ? FIRST : afterStart(source, begin);
  const fromEnd = start === 'end' ? openLive(endOf(source)) : undefined;
  await send(confirmationResponse());
  const live = fromEnd ?? (await catchUp(first(start)));
  try {
    await send(caughtUpResponse());
    for (;;) {
      const { record, at } = await live.take();
      await send(record ? eventResponse(record) : checkpointResponse(at));
    }
  } finally {
    live.close();
  }
}
