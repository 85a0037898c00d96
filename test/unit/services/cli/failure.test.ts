import { expect, test } from '@jest/globals';
import { CommanderError } from 'commander';
import { fileError, reportCliFailure } from '../../../../services/cli/failure.ts';

test('a file that exists is named with what to do, another failure with its reason', () => {
  const exists = Object.assign(new Error('EEXIST: file already exists'), { code: 'EEXIST' });
  expect(fileError('a.json', exists).message).toBe(
    'a.json exists already and was left as it is: name another file, or remove it first.',
  );
  expect(fileError('a.json', new Error('ENOSPC: no space left')).message).toBe(
    'a.json: ENOSPC: no space left',
  );
});

test('an unknown command is answered with where the known ones are', () => {
  let told = '';
  const target = { stderr: { write: (text: string) => (told += text) }, exitCode: 0 };
  const error = new CommanderError(1, 'commander.unknownCommand', "error: unknown command 'foo'");
  reportCliFailure(error, false, target);
  expect([told, target.exitCode]).toEqual(["unknown command 'foo': --help lists them\n", 2]);
});
