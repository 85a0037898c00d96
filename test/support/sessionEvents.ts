import type { SessionEvent, ToolCalledData } from '../../shared/domain/session/events.ts';

/** Session events as a run writes them, with defaults for what a test does not care about. */
export const AGENT_ID = 'agent_1';
export const TOKENS = { prompt: 3, completion: 2, total: 5 };

export const turnStartData = {
  input: 'hello',
  agent_revision: 0,
  model: 'm',
  settings: { model: 'm-upstream' },
  context_from_turn: 1,
  owner: 'instance-1',
  deadline: '2026-11-20T10:00:00.000Z',
};

export const sessionStarted: SessionEvent = {
  type: 'session.started.v1',
  data: { agent_id: AGENT_ID },
};
export const turnStarted = (turn: number, input = turnStartData.input): SessionEvent => ({
  type: 'session.turn_started.v1',
  data: { turn, ...turnStartData, input },
});
export const turnCompletedData = (turn: number, output = `answer ${turn}`) => ({
  turn,
  output,
  model: 'm-reported',
  tool_used: '',
  tokens: TOKENS,
  finish_reason: 'stop',
  duration_ms: 7,
  calls: [],
});
export const turnCompleted = (turn: number, output?: string): SessionEvent => ({
  type: 'session.turn_completed.v1',
  data: turnCompletedData(turn, output),
});
export const turnFailed = (turn: number): SessionEvent => ({
  type: 'session.turn_failed.v1',
  data: { turn, code: 'model_error', message: 'It broke.', calls: [] },
});
export const turnInterrupted = (turn: number): SessionEvent => ({
  type: 'session.turn_interrupted.v1',
  data: { turn, reason: 'crash' },
});
export const toolCallData = (turn: number, round: number, call_id: string): ToolCalledData => ({
  turn,
  round,
  call_id,
  tool: 'calculator',
  arguments: '{"expression":"1+1"}',
  result: '2',
  is_error: false,
  duration_ms: 1,
});
export const toolCalled = (turn: number, round: number, call_id: string): SessionEvent => ({
  type: 'session.tool_called.v1',
  data: toolCallData(turn, round, call_id),
});
