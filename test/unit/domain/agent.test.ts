import { describe, expect, test } from '@jest/globals';
import { agent } from '../../../shared/domain/agent/decider.ts';
import type { AgentConfiguration, AgentEvent } from '../../../shared/domain/agent/events.ts';
import { replay, specification } from '../../support/deciderSpecification.ts';

const given = specification(agent);
const configuration: AgentConfiguration = {
  name: 'Sums',
  instruction: 'Add.',
  model: 'm',
  tool: 'calculator',
  component: 'Chat',
};
const created: AgentEvent = { type: 'agent.created.v1', data: configuration };

describe('an agent', () => {
  test('is created once', () => {
    given().when({ type: 'create_agent', configuration }).then(created);
    given(created).when({ type: 'create_agent', configuration }).thenRejected('agent_exists');
    given(created, { type: 'agent.deleted.v1', data: configuration })
      .when({ type: 'create_agent', configuration })
      .thenRejected('agent_exists');
  });

  test('has the configuration of its last event', () => {
    const renamed = { ...configuration, name: 'Adds' };
    const updated: AgentEvent = { type: 'agent.updated.v1', data: renamed };
    const deleted: AgentEvent = { type: 'agent.deleted.v1', data: configuration };
    expect(replay(agent, [created, updated])).toEqual({ status: 'active', configuration: renamed });
    expect(replay(agent, [created, deleted])).toEqual({ status: 'deleted', configuration });
  });
});
