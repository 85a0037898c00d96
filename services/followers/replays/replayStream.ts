import { createSerialQueue } from '../../../shared/lib/concurrency/serialQueue.ts';
import { replay, type ReplayCommand, type ReplayState } from '../../../shared/replays/decider.ts';
import { authorOf } from '../../../shared/commandHandling/prepareEvents.ts';
import { handleLoaded, type HandleContext } from '../../../shared/commandHandling/handle.ts';
import {
  wholeStreamTarget,
  type LoadedStream,
} from '../../../shared/commandHandling/targetStream.ts';
import type { Actor } from '../../../shared/commandHandling/context.ts';
import { createReadReservation } from '../../../shared/eventlog/reading/readMemory.ts';
import { readFirstEvent } from '../../../shared/eventlog/reading/readWhole.ts';
import { replayStream } from '../../../shared/eventlog/streams.ts';
import type { RunContext } from '../../../shared/runs/context.ts';

/** The stream of a replay, as its runner reads and writes it. */
export interface ReplayStream {
  state(): ReplayState;
  /** The actor that started the replay; its runner acts on their behalf. */
  actor: Actor;
  /**
   * Appends the events of a command; commands are handled one at a time. Throws Rejection
   * (`replay_ended`, `replay_missing`) when the replay was cancelled or erased meanwhile.
   */
  record(command: ReplayCommand): Promise<void>;
}

/**
 * Loads the stream of a replay within reserved memory: a start opens all running replays at once. Errors:
 * those of handleLoaded, `rate_limited` or `overloaded` without memory, the abort reason.
 */
export async function openReplayStream(
  context: HandleContext & Pick<RunContext, 'memory'>,
  replayId: string,
  signal: AbortSignal,
): Promise<ReplayStream> {
  const target = wholeStreamTarget(replayStream(replayId), replay);
  const reserveRead = createReadReservation(context.memory, '');
  const source = { ...context, reserveRead, waitLimits: { signal } };
  const { recorded } = await readFirstEvent(source, target.stream);
  const { account_id, key_id } = recorded.metadata;
  const actor = { account_id, key_id, request_id: replayId };
  let current: LoadedStream<ReplayState> = await target.load(source);
  const records = createSerialQueue();

  async function record(command: ReplayCommand): Promise<void> {
    const order = { author: authorOf(actor), command };
    const { loaded, appended } = await handleLoaded(
      context,
      { ...target, preloaded: current },
      () => order,
    );
    // The decider is pure: deciding again yields the events that were appended.
    const events = replay.decide(command, loaded.state);
    current = {
      state: events.reduce(replay.evolve, loaded.state),
      head: appended?.head ?? loaded.head,
    };
  }

  return {
    state: () => current.state,
    actor,
    record: (command) => records.run(() => record(command)),
  };
}
