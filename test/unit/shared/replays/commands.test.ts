import { beforeEach, expect, jest, test } from '@jest/globals';
import {
  requireStartable,
  type ReplayContext,
  type ReplayInput,
} from '../../../../shared/replays/commands.ts';
import { LIMITS } from '../../../../shared/limits.ts';

const { running: most, runningOfAll } = LIMITS.replays;
const input: ReplayInput = {
  sessions: [{ session_id: 'session_1', revision: 2, turns: 1 }],
  tools: 'recorded',
  missing_tools: 'stop',
  concurrency: 1,
  budget_tokens: 1,
};

const findInput = jest.fn(async () => input);
beforeEach(() => void findInput.mockClear());

/** Asks for one more where so many run of the account, and of all. */
function startBeside({ own, all }: { own: number; all: number }): Promise<ReplayInput> {
  const readModels = {
    listRunningReplays: async (limit: number, account?: string) =>
      Array<string>(Math.min(limit, account === undefined ? all : own)).fill('replay_1'),
  };
  const context = { readModels, catalogue: {} } as unknown as ReplayContext;
  return requireStartable(context, { account_id: 'acct_1' }, findInput);
}

test('beyond so many replays of an account, or of all, none is started, and it is said which', async () => {
  expect(await startBeside({ own: most - 1, all: runningOfAll - 1 })).toEqual(input);
  await expect(startBeside({ own: most, all: most })).rejects.toMatchObject({
    code: 'replay_limit_reached',
    message: expect.stringContaining(`The account has ${most} replays`),
  });
  await expect(startBeside({ own: 0, all: runningOfAll })).rejects.toMatchObject({
    code: 'overloaded',
    message: expect.stringContaining(`The service runs ${runningOfAll} replays`),
    retryAfterSeconds: 60,
  });
  // The sessions of those that were refused have not been read.
  expect(findInput).toHaveBeenCalledTimes(1);
});
