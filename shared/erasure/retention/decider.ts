import type { Decider } from '../../domain/decider.ts';
import type { RetentionEvent } from './events.ts';

/** Times are UTC, ISO 8601. */
export type RetentionCommand =
  | { type: 'keep_time'; time: string }
  | { type: 'confirm_time'; time: string; reason: string }
  | { type: 'confirm_erasures'; before: string; reason: string };

/**
 * The content of the last event of a retention stream; each one replaces those before it. Times are
 * milliseconds since the epoch.
 */
export interface RetentionState {
  /** The revision of that event; -1 before the first. */
  revision: number;
  /** The proven time; absent in the stream of an account. */
  kept?: { time: number; confirmations: number; fromRevision: number };
  /** Sessions that were last active before this may be erased, however many they are. */
  confirmedBefore?: number;
}

/**
 * A stream of retention: the proven time of the log, or the erasures of an account that an operator
 * confirmed. The proven time only decreases when an operator confirms an earlier one.
 */
export const retention: Decider<RetentionCommand, RetentionState, RetentionEvent> = {
  initialState: { revision: -1 },
  decide(command, { revision, kept }) {
    const { confirmations = 0, fromRevision = 0, time = -Infinity } = kept ?? {};
    switch (command.type) {
      case 'keep_time': {
        if (Date.parse(command.time) <= time) return [];
        const data = { time: command.time, confirmations, from_revision: fromRevision };
        return [{ type: 'retention.time_kept.v1', data }];
      }
      case 'confirm_time': {
        const data = {
          time: command.time,
          confirmations: confirmations + 1,
          from_revision: Date.parse(command.time) < time ? revision + 1 : fromRevision,
          reason: command.reason,
        };
        return [{ type: 'retention.time_confirmed.v1', data }];
      }
      case 'confirm_erasures': {
        const data = { before: command.before, reason: command.reason };
        return [{ type: 'retention.erasures_confirmed.v1', data }];
      }
      default:
        return command satisfies never;
    }
  },
  evolve(state, event) {
    const revision = state.revision + 1;
    switch (event.type) {
      case 'retention.time_kept.v1':
      case 'retention.time_confirmed.v1': {
        const { time, confirmations, from_revision } = event.data;
        const kept = { time: Date.parse(time), confirmations, fromRevision: from_revision };
        return { revision, kept };
      }
      case 'retention.erasures_confirmed.v1':
        return { revision, confirmedBefore: Date.parse(event.data.before) };
      default:
        return event satisfies never;
    }
  },
};
