import { expect, test } from '@jest/globals';
import { Command, type CommanderError } from 'commander';
import { fileError, fileExistsError, reportCliFailure } from '../../../../services/cli/failure.ts';

test('the error for a file that exists says what to do, and another one gives the reason', () => {
  expect(fileExistsError('a.json').message).toBe(
    'a.json exists already and was left as it is: name another file, or remove it first.',
  );
  expect(fileError('a.json', new Error('ENOSPC: no space left')).message).toBe(
    'a.json: ENOSPC: no space left',
  );
});

test.each([
  ['foo', "unknown command 'foo': --help lists the commands\n"],
  ['acounts', "unknown command 'acounts': --help lists the commands\n(Did you mean accounts?)\n"],
])(
  'the error for the unknown command %s names --help, and one that is like it',
  (name, expected) => {
    let told = '';
    const target = { stderr: { write: (text: string) => (told += text) }, exitCode: 0 };
    const program = new Command().exitOverride().configureOutput({ writeErr: () => undefined });
    program.command('accounts');
    let error: CommanderError | undefined;
    try {
      program.parse([name], { from: 'user' });
    } catch (thrown) {
      error = thrown as CommanderError;
    }
    reportCliFailure(error, false, target);
    expect([told, target.exitCode]).toEqual([expected, 2]);
  },
);
