import { expect, test } from '@jest/globals';
import {
  diffConfigs,
  type RevisionConfig,
} from '../../../../../../services/console/src/agents/revisionDiff.ts';

const BASE: RevisionConfig = {
  component: 'Chat',
  config: { name: 'A', instruction: 'One\nTwo', model: 'm', temperature: 0 },
};
const change = (config: RevisionConfig['config'], component = 'Chat'): RevisionConfig => ({
  component,
  config: { ...BASE.config, ...config },
});

test('equal configurations differ in no field', () => {
  expect(diffConfigs(BASE, change({}))).toEqual([]);
});

test('a field that is not set differs from one that is, also from 0', () => {
  expect(diffConfigs(BASE, change({ temperature: undefined, tool: 'clock' }))).toEqual([
    { field: 'Tools', before: undefined, after: 'clock', isText: false },
    { field: 'Temperature', before: '0', after: undefined, isText: false },
  ]);
});

test('texts of several lines are compared by lines, a schema as indented JSON', () => {
  const after = change({ instruction: 'One', response_format: { type: 'text' } }, 'Wizard');
  expect(diffConfigs(BASE, after)).toEqual([
    {
      field: 'Response format',
      before: undefined,
      after: '{\n  "type": "text"\n}',
      isText: true,
    },
    { field: 'Instruction', before: 'One\nTwo', after: 'One', isText: true },
    { field: 'Component', before: 'Chat', after: 'Wizard', isText: false },
  ]);
});
