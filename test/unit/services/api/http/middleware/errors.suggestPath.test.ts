import { expect, test } from '@jest/globals';
import { createPathSuggestion } from '../../../../../../services/api/http/middleware/errors.ts';

const suggest = createPathSuggestion([
  { path: '/v1/agents' },
  { path: '/v1/agents/{agentId}' },
  { path: '/v1/agents/{agentId}/run' },
  { path: '/health/ready' },
]);

test.each([
  ['/v1/agents/', '/v1/agents'],
  ['//v1//agents', '/v1/agents'],
  ['/agents', '/v1/agents'],
  ['/v1/agent', '/v1/agents'],
  ['/V1/Agents/agent_Ab/runs', '/v1/agents/agent_Ab/run'],
  ['/agent/agent_1', '/v1/agents/agent_1'],
  ['/v1/agnets', '/v1/agents'],
  ['/v1/agents/agnet_1/rum', '/v1/agents/agnet_1/run'],
  ['/heath/redy', '/health/ready'],
  ['/api/v1/agents', '/v1/agents'],
  ['/api/agents', '/v1/agents'],
  ['/v2/agents/agent_1', '/v1/agents/agent_1'],
  ['/v1/health/ready', '/health/ready'],
  ['/v1/agents/agent_1/result', undefined],
  ['/v1/people', undefined],
  ['/', undefined],
  [`/v1/agents/${'a'.repeat(300)}/`, undefined],
])('%s: %s', (path, meant) => expect(suggest(path)).toBe(meant));
