import { expect, test } from '@jest/globals';
import { TurnlogError } from '../../../../../shared/lib/errors/turnlogError.ts';
import {
  compactIfNearlyFull,
  type CompactionContext,
} from '../../../../../shared/runs/model/compaction.ts';
import type { RunRequest } from '../../../../../shared/runs/runRequest.ts';
import type { ChatRequest } from '../../../../../shared/sessions/turns/chat.ts';
import { NEW_SESSION } from '../../../../../shared/sessions/history/loadSession.ts';

const TURNS = 10;
const history = Array.from({ length: TURNS }, (_, index) => ({
  turn: index + 1,
  input: `in ${index + 1}`,
  tool_calls: [],
  output: 'out',
}));

/** Compacts a session of short turns, and returns the turns that the model is asked to summarize. */
async function summarizedTurns(messages: number): Promise<number[]> {
  const requests: ChatRequest[] = [];
  const context = {
    budget: { counter: { count: async () => 1 }, turnTokens: new Map() },
    catalogue: {
      models: {
        find: () => ({ id: 'm' }),
        complete: async (_model: string, request: ChatRequest) => {
          requests.push(request);
          throw new TurnlogError('model_error', 'The model does not answer.');
        },
      },
    },
    limits: { timeoutMs: 60_000 },
    logger: { warn: () => undefined },
    runState: { failedCompactions: new Map() },
  } as unknown as CompactionContext;
  const request = {
    actor: { account_id: 'acct_1', key_id: 'k', request_id: 'r' },
    agent: { model: 'm', instruction: 'Be brief.', compaction: true },
    session_id: 'session_1',
  } as unknown as RunRequest;
  const state = { status: 'idle', agent_id: 'agent_1', turn: TURNS } as const;
  await compactIfNearlyFull(context, request, {
    settings: { model: 'm' },
    loaded: { ...NEW_SESSION, state, history, turns: history, summaryInPrompt: undefined },
    available: { tokens: 100_000, bytes: 100_000, messages },
    signal: new AbortController().signal,
  });
  const text = requests[0]?.messages[1]?.content ?? '';
  return [...text.matchAll(/in (\d+)/g)].map(([, turn]) => Number(turn));
}

test('turns of nearly as many messages as a prompt may show are summarized but for the newest', async () => {
  // 0.4 of 25 messages are those of five turns.
  expect(await summarizedTurns(25)).toEqual([1, 2, 3, 4, 5]);
});

test('turns of fewer messages are not summarized', async () => {
  expect(await summarizedTurns(27)).toEqual([]);
});
