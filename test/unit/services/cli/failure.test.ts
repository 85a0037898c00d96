import { expect, test } from '@jest/globals';
import { Command, type CommanderError } from 'commander';
import {
  fileError,
  fileExistsError,
  interruptedError,
  reportCliFailure,
} from '../../../../services/cli/failure.ts';
import { Rejection } from '../../../../shared/domain/rejection.ts';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';

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

const storeError = new TurnlogError('store_unavailable', 'The store can’t be closed.');
const defect = new TypeError('x is not a function');

test.each<[string, unknown, number]>([
  ['a TurnlogError', storeError, 1],
  ['a rejection', new Rejection('account_missing', 'There is no such account.'), 1],
  ['a defect', defect, 70],
  ['an interruption', interruptedError(), 130],
  [
    'an interruption, then a failed close',
    new SuppressedError(storeError, interruptedError()),
    130,
  ],
  ['a defect, then a failed close', new SuppressedError(storeError, defect), 70],
  ['a failure, then a defect of the close', new SuppressedError(defect, storeError), 70],
])('the exit code of %s', (_what, error, code) => {
  const target = { stderr: { write: () => true }, exitCode: 0 };
  reportCliFailure(error, false, target);
  expect(target.exitCode).toBe(code);
});
