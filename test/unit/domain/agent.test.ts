import { describe, expect, test } from '@jest/globals';
import { agent } from '../../../shared/domain/agent/decider.ts';
import { replay, specification } from '../../support/events/deciderSpecification.ts';
import {
  agentCreated,
  agentData,
  agentDeleted,
  agentErased,
  agentUpdated,
} from '../../support/events/events.ts';

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

  test('is erased once, deleted or not, and no other takes its id', () => {
    const erase = { type: 'erase_agent', reason: 'request', key_ids: ['k'] } as const;
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
