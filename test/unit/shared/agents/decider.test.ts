import { describe, expect, test } from '@jest/globals';
import { agent, type AgentCommand } from '../../../../shared/agents/decider.ts';
import { replay, specification } from '../../../support/builders/deciderSpecification.ts';
import {
  agentCreated,
  agentData,
  agentDeleted,
  agentErased,
  agentUpdated,
} from '../../../support/builders/events.ts';

const given = specification(agent);
const configuration = agentData({ tool: 'calculator' });
const created = agentCreated(configuration);

describe('an agent', () => {
  test('is created once', () => {
    given().when({ type: 'create_agent', configuration }).then(created);
    given(created).when({ type: 'create_agent', configuration }).thenRejected('agent_exists');
    given(created, agentDeleted(configuration))
      .when({ type: 'create_agent', configuration })
      .thenRejected('agent_exists');
  });

  test('has the configuration of its last event', () => {
    const renamed = { ...configuration, name: 'Adds' };
    const updated = agentUpdated(renamed);
    const deleted = agentDeleted(configuration);
    expect(replay(agent, [created, updated])).toEqual({ status: 'active', configuration: renamed });
    expect(replay(agent, [created, deleted])).toEqual({ status: 'deleted', configuration });
  });

  test('is changed and deleted while it is there, and only where that changes something', () => {
    const renamed = { ...configuration, name: 'Adds' };
    const deleted = agentDeleted(renamed);
    const update: AgentCommand = { type: 'update_agent', configuration: renamed };
    given(created).when(update).then(agentUpdated(renamed));
    given(created, agentUpdated(renamed)).when(update).then();
    const { tool, ...others } = configuration;
    given(created)
      .when({ type: 'update_agent', configuration: { tool, ...others } as typeof configuration })
      .then();
    given(created).when({ type: 'update_agent', configuration: others }).then({
      type: 'agent.updated.v1',
      data: others,
    });
    given(created, agentUpdated(renamed)).when({ type: 'delete_agent' }).then(deleted);
    for (const command of [update, { type: 'delete_agent' } as const]) {
      given().when(command).thenRejected('agent_missing');
      given(created, deleted).when(command).thenRejected('agent_deleted');
      given(created, agentErased()).when(command).thenRejected('agent_erased');
    }
  });

  test('is erased once, deleted or not, and no other takes its id', () => {
    const erase: AgentCommand = { type: 'erase_agent', reason: 'request', key_ids: ['k'] };
    const erased = agentErased({ key_ids: ['k'] });
    given().when(erase).thenRejected('agent_missing');
    given(created).when(erase).then(erased);
    given(created, agentDeleted(configuration)).when(erase).then(erased);
    given(created, erased).when(erase).then();
    given(created, erased)
      .when({ type: 'create_agent', configuration })
      .thenRejected('agent_exists');
  });
});
