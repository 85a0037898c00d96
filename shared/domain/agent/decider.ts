import type { Decider } from '../decider.ts';
import { Rejection } from '../rejection.ts';
import type { AgentConfiguration, AgentEvent } from './events.ts';

export type AgentCommand = { type: 'create_agent'; configuration: AgentConfiguration };

export type AgentState =
  { status: 'none' } | { status: 'active' | 'deleted'; configuration: AgentConfiguration };

function decide(command: AgentCommand, state: AgentState): AgentEvent[] {
  if (state.status !== 'none')
    throw new Rejection('agent_exists', 'An agent of this id exists already.');
  return [{ type: 'agent.created.v1', data: command.configuration }];
}

function evolve(_state: AgentState, event: AgentEvent): AgentState {
  switch (event.type) {
    case 'agent.created.v1':
    case 'agent.updated.v1':
      return { status: 'active', configuration: event.data };
    case 'agent.deleted.v1':
      return { status: 'deleted', configuration: event.data };
    default:
      return event satisfies never;
  }
}

/** An agent: a stored configuration that runs refer to by revision. */
export const agent: Decider<AgentCommand, AgentState, AgentEvent> = {
  initialState: { status: 'none' },
  decide,
  evolve,
};
