import type { Decider } from '../domain/decider.ts';
import { Rejection } from '../domain/rejection.ts';
import type { Erasure } from '../domain/schema.ts';
import type { AgentConfiguration, AgentEvent } from './events.ts';

export type AgentCommand =
  | { type: 'create_agent' | 'update_agent'; configuration: AgentConfiguration }
  | { type: 'delete_agent' }
  | ({ type: 'erase_agent' } & Erasure);

export type AgentState =
  | { status: 'none' | 'erased' }
  | { status: 'active' | 'deleted'; configuration: AgentConfiguration };

/** The configuration of an agent that can still be changed. */
function configurationOf(state: AgentState): AgentConfiguration {
  if (state.status === 'active') return state.configuration;
  if (state.status === 'none') throw new Rejection('agent_missing', 'There is no such agent.');
  throw state.status === 'deleted'
    ? new Rejection('agent_deleted', 'The agent was deleted.')
    : new Rejection('agent_erased', 'The agent was erased.');
}

/** Members in order, those of members, too: the log does not keep the order in which they came. */
const inOrder = (_name: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    : value;
const written = (configuration: AgentConfiguration): string =>
  JSON.stringify(configuration, inOrder);

function decide(command: AgentCommand, state: AgentState): AgentEvent[] {
  switch (command.type) {
    case 'create_agent':
      if (state.status !== 'none')
        throw new Rejection('agent_exists', 'An agent of this id exists already.');
      return [{ type: 'agent.created.v1', data: command.configuration }];
    case 'update_agent': {
      const { configuration } = command;
      return written(configurationOf(state)) === written(configuration)
        ? []
        : [{ type: 'agent.updated.v1', data: configuration }];
    }
    case 'delete_agent':
      return [{ type: 'agent.deleted.v1', data: configurationOf(state) }];
    case 'erase_agent': {
      if (state.status === 'none') throw new Rejection('agent_missing', 'There is no such agent.');
      const { type: _, ...data } = command;
      return state.status === 'erased' ? [] : [{ type: 'agent.erased.v1', data }];
    }
    default:
      return command satisfies never;
  }
}

/** Each event holds the whole state, so that a change need not read earlier ones. */
function evolve(_state: AgentState, event: AgentEvent): AgentState {
  switch (event.type) {
    case 'agent.created.v1':
    case 'agent.updated.v1':
      return { status: 'active', configuration: event.data };
    case 'agent.deleted.v1':
      return { status: 'deleted', configuration: event.data };
    case 'agent.erased.v1':
      return { status: 'erased' };
    default:
      return event satisfies never;
  }
}

/**
 * An agent: a stored configuration that runs refer to by revision. A change that changes nothing, and
 * erasing it again, decide nothing.
 */
export const agent: Decider<AgentCommand, AgentState, AgentEvent> = {
  initialState: { status: 'none' },
  decide,
  evolve,
};
