import type { SessionEvent, ToolCalledData } from '../events.ts';
import type { Turn } from '../turns/prompt.ts';

/** The end of a completed turn whose start has not been read yet. */
interface TurnEnd {
  turn: number;
  output: string;
  /** Newest first. */
  calls: ToolCalledData[];
}

/** Builds completed turns from a session that is read backwards. */
interface BackwardTurns {
  /** The completed turns that begin in the next older page of events. Both are oldest first. */
  add(events: readonly SessionEvent[]): Turn[];
}

/**
 * Keeps only what prompts contain: settings, reasoning and model calls of a turn may be many times as
 * long, and are dropped with their page.
 */
export function createBackwardTurns(): BackwardTurns {
  let end: TurnEnd | undefined;
  return {
    add(events) {
      const turns: Turn[] = [];
      for (const event of events.toReversed()) {
        if (event.type === 'session.turn_completed.v1')
          end = { turn: event.data.turn, output: event.data.output, calls: [] };
        if (event.type === 'session.tool_called.v1' && event.data.turn === end?.turn)
          end.calls.push(event.data);
        if (event.type !== 'session.turn_started.v1') continue;
        const { turn, input } = event.data;
        if (turn === end?.turn)
          turns.push({ turn, input, tool_calls: end.calls.toReversed(), output: end.output });
        end = undefined;
      }
      return turns.toReversed();
    },
  };
}

/**
 * The oldest turn whose start is among the events, or the last one that a fork shares. Infinity
 * without such an event.
 */
export const oldestTurnIn = (events: readonly SessionEvent[]): number =>
  events.reduce((oldest, { type, data }) => {
    if (type === 'session.started.v1') return Math.min(oldest, data.forked_from?.turn ?? 0);
    return type === 'session.turn_started.v1' ? Math.min(oldest, data.turn) : oldest;
  }, Infinity);
