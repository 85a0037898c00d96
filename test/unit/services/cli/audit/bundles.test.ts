import { Command } from 'commander';
import { expect, test } from '@jest/globals';
import { addBundleCommands } from '../../../../../services/cli/audit/bundles.ts';
import type { CliContext } from '../../../../../services/cli/context.ts';
import { createDamagedStreams } from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import { sessionStarted, turnStarted } from '../../../../support/builders/events.ts';
import { recordHistory } from '../../../../support/builders/history.ts';

test('an export of a session that gets an event meanwhile does not take it for damaged', async () => {
  const { record } = recordHistory();
  const stream = { stream: 'session-session_1' };
  const events = [record(stream, sessionStarted('agent_1'))];
  let turns = 0;
  /** Every read is followed by another event. */
  const grow = <Found>(found: Found): Found => {
    events.push(record(stream, turnStarted((turns += 1))));
    return found;
  };
  const operator = {
    damaged: createDamagedStreams(() => undefined),
    store: { readStream: async () => grow([events.at(-1)]) },
    followedLog: async () => 'log_1',
    readModels: async () => ({ findSession: async () => grow({ revision: events.length - 1 }) }),
    tiles: () => {
      throw new Error('The head was read.');
    },
  };
  const context = { operator, signal: new AbortController().signal } as unknown as CliContext;
  const audit = new Command();
  addBundleCommands(
    audit,
    (command) => command(context),
    async () => undefined,
  );
  const args = ['export', '--session', 'session_1', '--out', '/tmp/none.bundle'];
  await expect(audit.parseAsync(args, { from: 'user' })).rejects.toThrow('The head was read.');
});
