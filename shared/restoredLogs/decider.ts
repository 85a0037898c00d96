import type { Decider } from '../domain/decider.ts';
import type { LogEvent } from './events.ts';

export interface LogCommand {
  type: 'accept_restore';
  replaces: readonly string[];
  reason: string;
}

/** The log's own stream, which records deliberate restores. */
export const log: Decider<LogCommand, null, LogEvent> = {
  initialState: null,
  decide: ({ replaces, reason }) => [
    { type: 'log.restore_accepted.v1', data: { replaces: [...replaces], reason } },
  ],
  evolve: (state) => state,
};
