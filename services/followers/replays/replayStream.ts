import { replay, type ReplayCommand, type ReplayState } from '../../../shared/replays/decider.ts';
import { authorOf } from '../../../shared/commandHandling/prepareEvents.ts';
import { handleLoaded, type HandleContext } from '../../../shared/commandHandling/handle.ts';
import {
  wholeStreamTarget,
  type LoadedStream,
} from '../../../shared/commandHandling/targetStream.ts';
import type { Actor } from '../../../shared/commandHandling/context.ts';
import { readFirstEvent } from '../../../shared/eventlog/reading/readWhole.ts';
import { replayStream } from '../../../shared/eventlog/streams.ts';

/** The stream of a replay, as its runner knows and writes it. */
export interface ReplayStream {
  state(): ReplayState;
  /** Who started the replay; what its runner does is done for them. */
  actor: Actor;
  /**
   * Records what a command decides, one command after the other. Errors: Rejection (`replay_ended`,
   * `replay_missing`: it was cancelled or erased meanwhile), those of handleFound.
   */
  record(command: ReplayCommand): Promise<void>;
}

/** Errors: `stream_damaged` (noted), `release_too_old`, `key_missing`, `store_unavailable`. */
export async function openReplayStream(
  context: HandleContext,
  replayId: string,
): Promise<ReplayStream> {
  const target = wholeStreamTarget(replayStream(replayId), replay);
  const { recorded } = await readFirstEvent(context, target.stream);
  const { account_id, key_id } = recorded.metadata;
  const actor = { account_id, key_id, request_id: replayId };
  let known: LoadedStream<ReplayState> = await target.load(context);
  let last: Promise<unknown> = Promise.resolve();

  async function record(command: ReplayCommand): Promise<void> {
    const order = { author: authorOf(actor), command };
    const { loaded, appended } = await handleLoaded(
      context,
      { ...target, preloaded: known },
      () => order,
    );
    // What was decided is what is decided again.
    const events = replay.decide(command, loaded.state);
    known = {
      state: events.reduce(replay.evolve, loaded.state),
      head: appended?.head ?? loaded.head,
    };
  }

  return {
    state: () => known.state,
    actor,
    record(command) {
      const told = last.then(() => record(command));
      last = told.catch(() => undefined);
      return told;
    },
  };
}
