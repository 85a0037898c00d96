import { expect, test } from '@jest/globals';
import { toReplayBody } from '../../../../../../services/console/src/replays/replayForm.ts';

const DEFAULTS = { tools: 'recorded', missing_tools: 'stop', concurrency: 1 };

test('an empty form replays all sessions as they were recorded', () => {
  expect(toReplayBody({})).toEqual(DEFAULTS);
  expect(toReplayBody({ sessions: ' \n', q: ' ', label: '', budget: '' })).toEqual(DEFAULTS);
});

test('a form becomes the request with what was filled in', () => {
  expect(
    toReplayBody({
      sessions: 'session_a\nsession_b, session_a',
      filter_agent: 'agent_1',
      label: 'customer:4711',
      agent_id: 'agent_2',
      agent_revision: '0',
      model: 'm',
      instruction: 'Be exact.',
      tools: 'live',
      from: '2',
      budget: '500',
      concurrency: '4',
      checks: '[{"contains": "42"}]',
    }),
  ).toEqual({
    sessions: ['session_a', 'session_b'],
    filter: { agent_id: 'agent_1', label: ['customer:4711'] },
    agent_id: 'agent_2',
    agent_revision: 0,
    model: 'm',
    instruction: 'Be exact.',
    tools: 'live',
    missing_tools: 'stop',
    turns: { from: 2 },
    budget: { tokens: 500 },
    concurrency: 4,
    checks: [{ contains: '42' }],
  });
});

test('a form whose checks are not JSON becomes no request', () => {
  expect(toReplayBody({ checks: 'contains 42' })).toBeUndefined();
});
