import { randomUUID } from 'node:crypto';
import { chainEvents, NO_STREAM, type StreamHead } from '../../shared/eventlog/append.ts';
import type { DomainEvent } from '../../shared/domain/events.ts';
import type { KeyData } from '../../shared/domain/account/events.ts';
import type { AgentConfiguration } from '../../shared/domain/agent/events.ts';
import type {
  ToolCalledData,
  TurnCompletedData,
  TurnStartedData,
} from '../../shared/domain/session/events.ts';
import type { Position, StoredEvent } from '../../shared/ports/eventStore.ts';

interface Recording {
  stream: string;
  /** Of the metadata. */
  account?: string;
  at?: string;
}

/** The instant `seconds` after an arbitrary beginning. */
export const at = (seconds: number): string =>
  new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString();

/** Builds stored events as an event store would return them: chained, with dense positions after `first`. */
export function recordHistory(first = 0) {
  const heads = new Map<string, StreamHead>();
  let last = first;
  return {
    record(recording: Recording, event: DomainEvent | { type: string; data: object }): StoredEvent {
      const { stream, account = 'acct_1', at: recorded_at = at(last) } = recording;
      const before = heads.get(stream) ?? NO_STREAM;
      const { encoded, head } = chainEvents(stream, before, [{ id: randomUUID(), ...event }], {
        account_id: account,
        key_id: 'key_1',
        request_id: 'request',
        causation_id: 'request',
        recorded_at,
      });
      heads.set(stream, head);
      last += 1;
      const [written] = encoded;
      if (!written) throw new Error('nothing was encoded');
      return { ...written, stream, revision: head.revision, position: positionOf(last) };
    },
    lastPosition: (): Position => positionOf(last),
  };
}

export const positionOf = (place: number): Position => String(place).padStart(16, '0') as Position;

export const keyData = (key_id: string, changes: Partial<KeyData> = {}): KeyData => ({
  key_id,
  name: `name of ${key_id}`,
  hash: 'ab'.repeat(32),
  scopes: ['agents:read', 'agents:run'],
  expires_at: null,
  ...changes,
});

export const agentData = (changes: Partial<AgentConfiguration> = {}): AgentConfiguration => ({
  name: 'Researcher',
  instruction: 'Answer briefly.',
  model: 'gpt-4o',
  component: 'Chat',
  ...changes,
});

export const turnStarted = (turn: number, changes: Partial<TurnStartedData> = {}): DomainEvent => ({
  type: 'session.turn_started.v1',
  data: {
    turn,
    input: `question ${turn}`,
    agent_revision: 0,
    model: 'gpt-4o',
    settings: { model: 'gpt-4o-2026' },
    context_from_turn: 1,
    owner: 'instance-1',
    deadline: at(600),
    ...changes,
  },
});

export const toolCalled = (turn: number, changes: Partial<ToolCalledData> = {}): DomainEvent => ({
  type: 'session.tool_called.v1',
  data: {
    turn,
    round: 1,
    call_id: 'call_1',
    tool: 'calculator',
    arguments: '{"expression":"12*34"}',
    result: '408',
    is_error: false,
    duration_ms: 3,
    ...changes,
  },
});

export const turnCompleted = (
  turn: number,
  changes: Partial<TurnCompletedData> = {},
): DomainEvent => ({
  type: 'session.turn_completed.v1',
  data: {
    turn,
    output: `answer ${turn}`,
    model: 'gpt-4o-2026',
    tool_used: '',
    tokens: { prompt: 9, completion: 3, total: 12 },
    finish_reason: 'stop',
    duration_ms: 40,
    calls: [],
    ...changes,
  },
});

export const sessionStarted = (agent_id: string): DomainEvent => ({
  type: 'session.started.v1',
  data: { agent_id },
});
