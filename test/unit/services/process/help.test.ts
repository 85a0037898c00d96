import { expect, test } from '@jest/globals';
import packageFile from '../../../../package.json' with { type: 'json' };
import { answerWithoutStart } from '../../../../services/process/help.ts';

test.each(['--help', '-h'])(
  '%s names the services, the main options and where the rest is',
  (option) => {
    const text = answerWithoutStart(['--services', 'api', option]);
    expect(text).toContain('of api, projector, relay (separated by commas)');
    expect(text).toMatch(/^ {2}PORT +Port to listen on; 0 takes a free one \(3000\)$/m);
    expect(text!.match(/^ {2}[A-Z_]+ /gm)).toHaveLength(10);
    expect(text).toContain('All options: docs/configuration.md');
  },
);

test('--version is the version of the package', () => {
  expect(answerWithoutStart(['--version'])).toBe(`${packageFile.version}\n`);
});

test('anything else starts the service', () => {
  expect(answerWithoutStart([])).toBeUndefined();
  expect(answerWithoutStart(['--services', 'api'])).toBeUndefined();
});
