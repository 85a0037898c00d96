import type streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import { endedWhenSlow } from './endedWhenSlow.ts';
import { endOf, openLiveQueue, type LiveQueue } from './liveQueue.ts';
import {
  caughtUpResponse,
  checkpointResponse,
  confirmationResponse,
  eventResponse,
} from './messages.ts';
import type { NodeContext } from './node.ts';
import { FIRST, HEAD, isBefore, readPage, turn } from './page.ts';
import type { Responder } from './responder.ts';
import { followAll, followStream, type Followed } from './sources.ts';
import type { TfPosition } from './types.ts';
import type { ServerVersion } from './versions.ts';
import { invalidPosition, type WireError } from './wireErrors.ts';

/** The place HEAD as a client reads it: minus one in 64 bits without a sign. */
const AS_SENT_HEAD: TfPosition = { commit: 2n ** 64n - 1n, prepare: 2n ** 64n - 1n };

/** Sends checkpoints, each only once, and none that lies before one that was sent. */
function checkpointSender({ send }: Responder, interval: number | undefined) {
  let sent: TfPosition | undefined;
  return async (checkpoint: TfPosition): Promise<void> => {
    if (interval === undefined) return;
    const place = checkpoint.commit === HEAD.commit ? AS_SENT_HEAD : checkpoint;
    if (sent && !isBefore(sent, place)) return;
    sent = place;
    await send(checkpointResponse(place));
  };
}

/**
 * Follows as servers from 24 on do: reads pages until the end of the log, says that it has caught
 * up, and sends what is written from then on. When so much waits that something was lost, it goes
 * back to the log, without a word about it.
 */
function caughtUpAgain(
  { source, interval }: Followed,
  live: LiveQueue,
  version: ServerVersion,
  responder: Responder,
) {
  const { send, signal } = responder;
  const sendCheckpoint = checkpointSender(responder, interval);
  let number = 0;

  /** Answers with the place up to which the client has all. */
  async function catchUp(checkpoint: TfPosition): Promise<TfPosition> {
    let from = checkpoint.commit === HEAD.commit ? FIRST : checkpoint;
    let considered = 0;
    const movesAlways = version.emptyCatchUp === 'start';
    for (;;) {
      signal.throwIfAborted();
      const page = readPage(source, from);
      for (const event of page.events) {
        const at = source.placeOf(event);
        if (!isBefore(checkpoint, at)) continue;
        await send(eventResponse(event));
        checkpoint = at;
      }
      if (movesAlways && isBefore(checkpoint, page.from) && isBefore(page.from, page.next))
        checkpoint = page.from;
      considered += page.considered;
      if (page.isEnd) {
        await sendCheckpoint(checkpoint);
        return checkpoint;
      }
      if (interval !== undefined && considered >= interval) {
        considered %= interval;
        if (isBefore(checkpoint, page.from)) checkpoint = page.from;
        await sendCheckpoint(checkpoint);
      }
      from = page.next;
      await turn();
    }
  }

  /** Answers, once something was lost, with the place up to which the client has all. */
  async function goLive(checkpoint: TfPosition): Promise<TfPosition> {
    await send(caughtUpResponse());
    for (;;) {
      const item = await live.take();
      const follows = item.number === number + 1;
      number = item.number;
      if (item.record ? !isBefore(checkpoint, item.at) : isBefore(item.at, checkpoint)) continue;
      if (!follows) {
        await sendCheckpoint(checkpoint);
        return checkpoint;
      }
      await (item.record ? send(eventResponse(item.record)) : sendCheckpoint(item.at));
      checkpoint = item.at;
    }
  }

  return { catchUp, goLive };
}

async function follow(
  { log, version }: NodeContext,
  followed: Followed,
  responder: Responder,
): Promise<void> {
  if (version.slowConsumer === 'ended') return endedWhenSlow(log, followed, responder);
  const { source, start, interval, isStartValid } = followed;
  const last = source.last();
  const live = openLiveQueue(source, endOf(source), {
    onWrite: log.onWrite,
    signal: responder.signal,
    interval,
  });
  try {
    await responder.send(confirmationResponse());
    if (!isStartValid()) throw invalidPosition();
    const { catchUp, goLive } = caughtUpAgain(followed, live, version, responder);
    let checkpoint = start === 'end' ? last : start;
    if (!isBefore(checkpoint, last)) checkpoint = await goLive(checkpoint);
    for (;;) checkpoint = await goLive(await catchUp(checkpoint));
  } finally {
    live.close();
  }
}

/**
 * How a server from 24 on turns a subscription away: when it looks for the first page, and the
 * client takes it for open.
 */
export async function confirmAndRefuse({ send }: Responder, refusal: WireError): Promise<never> {
  await send(confirmationResponse());
  throw refusal;
}

type Options = streamsPb.ReadReq.Options;

export const subscribeToAll = (
  node: NodeContext,
  options: Options,
  responder: Responder,
): Promise<void> => follow(node, followAll(node.log, options), responder);

export const subscribeToStream = (
  node: NodeContext,
  options: Options,
  responder: Responder,
): Promise<void> => follow(node, followStream(node.log, options), responder);
