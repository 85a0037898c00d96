import type {
  ReplayEnd,
  ReplayEvent,
  ReplayStartedData,
  TurnComparison,
} from '../../../shared/replays/events.ts';
/**
 * The vocabulary of recorded events: every event that a test needs is built here, with defaults for
 * what the test does not care about. A new event type, or a new field of one, changes this file and
 * the tests that are about it.
 */
import type {
  AccountErasedData,
  AccountEvent,
  AccountHold,
  AccountLimits,
  AccountRetention,
  KeyData,
} from '../../../shared/accounts/events.ts';
import type { AgentConfiguration, AgentEvent } from '../../../shared/agents/events.ts';
import type { AuditData, AuditEvent } from '../../../shared/audit/events.ts';
import type { LogEvent } from '../../../shared/restoredLogs/events.ts';
import type { RetentionEvent } from '../../../shared/erasure/retention/events.ts';
import type { RequestBegunData, RequestEvent } from '../../../shared/requests/events.ts';
import type { DomainEvent } from '../../../shared/eventlog/eventTypes.ts';
import type { Erasure } from '../../../shared/domain/schema.ts';
import type {
  SessionCompactedData,
  SessionEvent,
  ToolCalledData,
  TurnCompletedData,
  TurnFailedData,
  TurnStartedData,
} from '../../../shared/sessions/events.ts';
import type { ModelCall } from '../../../shared/sessions/turns/promptParts.ts';
import type { WebhookEvent, WebhookSettings } from '../../../shared/webhooks/events.ts';
import type { SessionRow } from '../../../shared/readModels/tables.ts';

export const AGENT_ID = 'agent_1';

/** The instant `seconds` after an arbitrary beginning. */
export const at = (seconds: number): string =>
  new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString();

export const keyData = (key_id: string, changes: Partial<KeyData> = {}): KeyData => ({
  key_id,
  name: `name of ${key_id}`,
  hash: 'ab'.repeat(32),
  scopes: ['agents:read', 'agents:run'],
  expires_at: null,
  ...changes,
});

export const accountOpened = (name = 'An account'): AccountEvent => ({
  type: 'account.opened.v1',
  data: { name },
});
export const keyIssued = (key_id: string, changes?: Partial<KeyData>): AccountEvent => ({
  type: 'account.key_issued.v1',
  data: keyData(key_id, changes),
});
export const keyRevoked = (key_id: string, changes?: Partial<KeyData>): AccountEvent => ({
  type: 'account.key_revoked.v1',
  data: keyData(key_id, changes),
});

export const keyRotated = (
  key_id: string,
  replaced_by: string,
  expires_at = '2026-01-02T00:00:00.000Z',
  rotated_by?: string,
): AccountEvent => ({
  type: 'account.key_rotated.v1',
  data: { key_id, replaced_by, expires_at, ...(rotated_by !== undefined && { rotated_by }) },
});

export const agentData = (changes: Partial<AgentConfiguration> = {}): AgentConfiguration => ({
  name: 'Researcher',
  instruction: 'Answer briefly.',
  model: 'gpt-4o',
  component: 'Chat',
  ...changes,
});

export const agentCreated = (changes?: Partial<AgentConfiguration>): AgentEvent => ({
  type: 'agent.created.v1',
  data: agentData(changes),
});
export const limitsSet = (limits: AccountLimits): AccountEvent => ({
  type: 'account.limits_set.v1',
  data: limits,
});

export const retentionSet = (retention: AccountRetention): AccountEvent => ({
  type: 'account.retention_set.v1',
  data: retention,
});
export const holdSet = (hold: AccountHold): AccountEvent => ({
  type: 'account.hold_set.v1',
  data: hold,
});
export const accountAudited = (changes: Partial<AuditData> = {}): AuditEvent => ({
  type: 'account.audited.v1',
  data: { action: 'read', subject: 'session-session_1', ...changes },
});

export const agentUpdated = (changes?: Partial<AgentConfiguration>): AgentEvent => ({
  type: 'agent.updated.v1',
  data: agentData(changes),
});
export const agentDeleted = (changes?: Partial<AgentConfiguration>): AgentEvent => ({
  type: 'agent.deleted.v1',
  data: agentData(changes),
});

export const modelCall: ModelCall = {
  request_sha256: 'ab'.repeat(32),
  response_id: 'r',
  model: 'gpt-4o-2026',
  finish_reason: 'stop',
  tokens: { prompt: 1, completion: 1, total: 2 },
  duration_ms: 1,
};

export const sessionStarted = (agent_id = AGENT_ID, more: object = {}): SessionEvent => ({
  type: 'session.started.v1',
  data: { agent_id, ...more },
});

/** What a command to start a turn carries: all but the number, which the decider gives. */
export const turnStartData: Omit<TurnStartedData, 'turn'> = {
  input: 'hello',
  agent_revision: 0,
  model: 'gpt-4o',
  settings: {
    model: 'gpt-4o-2026',
    tools: [
      {
        type: 'function',
        function: { name: 'calculator', description: 'Calculates.', parameters: {} },
      },
    ],
  },
  context_from_turn: 1,
  owner: 'instance-1',
  deadline: at(600),
};
export const turnStarted = (
  turn: number,
  changes: Partial<TurnStartedData> = {},
): SessionEvent => ({
  type: 'session.turn_started.v1',
  data: { turn, ...turnStartData, input: `question ${turn}`, ...changes },
});

export const toolCallData = (
  turn: number,
  changes: Partial<ToolCalledData> = {},
): ToolCalledData => ({
  turn,
  round: 1,
  call_id: 'call_1',
  tool: 'calculator',
  arguments: '{"expression":"12*34"}',
  result: '408',
  is_error: false,
  duration_ms: 3,
  ...changes,
});
export const toolCalled = (turn: number, changes?: Partial<ToolCalledData>): SessionEvent => ({
  type: 'session.tool_called.v1',
  data: toolCallData(turn, changes),
});

export const turnCompletedData = (
  turn: number,
  changes: Partial<TurnCompletedData> = {},
): TurnCompletedData => ({
  turn,
  output: `answer ${turn}`,
  model: 'gpt-4o-2026',
  tool_used: '',
  tokens: { prompt: 9, completion: 3, total: 12 },
  finish_reason: 'stop',
  duration_ms: 40,
  calls: [],
  ...changes,
});
export const turnCompleted = (
  turn: number,
  changes?: Partial<TurnCompletedData>,
): SessionEvent => ({ type: 'session.turn_completed.v1', data: turnCompletedData(turn, changes) });

export const turnFailedData = (
  turn: number,
  changes: Partial<TurnFailedData> = {},
): TurnFailedData => ({ turn, code: 'model_error', message: 'It broke.', calls: [], ...changes });
export const turnFailed = (turn: number, changes?: Partial<TurnFailedData>): SessionEvent => ({
  type: 'session.turn_failed.v1',
  data: turnFailedData(turn, changes),
});

export const turnInterrupted = (turn: number): SessionEvent => ({
  type: 'session.turn_interrupted.v1',
  data: { turn, reason: 'crash' },
});

export const sessionCompacted = (
  from_turn: number,
  up_to_turn: number,
  changes: Partial<SessionCompactedData> = {},
): SessionEvent => ({
  type: 'session.compacted.v1',
  data: {
    from_turn,
    up_to_turn,
    summary: `what was said up to ${up_to_turn}`,
    agent_revision: 0,
    settings: { model: 'gpt-4o-2026' },
    call: modelCall,
    ...changes,
  },
});
export const sessionDescribed = (
  labels: Record<string, string> = { case: '12' },
  title?: string,
  last_turn?: number,
): SessionEvent => ({
  type: 'session.described.v1',
  data: {
    ...(last_turn !== undefined && { last_turn }),
    ...(title !== undefined && { title }),
    labels: Object.entries(labels).map(([name, value]) => ({ name, value })),
  },
});

const erasure: Erasure = { reason: 'request', key_ids: ['k'.repeat(16)] };
export const sessionErased = (changes: Partial<Erasure> = {}): SessionEvent => ({
  type: 'session.erased.v1',
  data: { ...erasure, ...changes },
});
export const agentErased = (changes: Partial<Erasure> = {}): AgentEvent => ({
  type: 'agent.erased.v1',
  data: { ...erasure, ...changes },
});
export const accountErased = (changes: Partial<AccountErasedData> = {}): AccountEvent => ({
  type: 'account.erased.v1',
  data: { key_ids: erasure.key_ids, ...changes },
});

export const webhookSettings = (changes: Partial<WebhookSettings> = {}): WebhookSettings => ({
  url: 'https://example.com/turnlog',
  ...changes,
});
export const webhookCreated = (changes?: Partial<WebhookSettings>): WebhookEvent => ({
  type: 'webhook.created.v1',
  data: { ...webhookSettings(changes), secret: 'whsec_c2VjcmV0' },
});
export const webhookChanged = (
  changes?: Partial<WebhookSettings>,
  enabled?: boolean,
): WebhookEvent => ({
  type: 'webhook.changed.v1',
  data: { ...webhookSettings(changes), ...(enabled !== undefined && { enabled }) },
});
/** As early releases recorded it, unless it repeats the settings. */
export const webhookEnabled = (settings: Partial<WebhookSettings> = {}): WebhookEvent => ({
  type: 'webhook.enabled.v1',
  data: settings,
});
export const webhookDisabled = (
  reason: 'request' | 'failing' | 'gone' = 'failing',
  settings: Partial<WebhookSettings> = {},
): WebhookEvent => ({ type: 'webhook.disabled.v1', data: { ...settings, reason } });
export const webhookDeleted = (): WebhookEvent => ({ type: 'webhook.deleted.v1', data: {} });
export const webhookErased = (changes: Partial<Erasure> = {}): WebhookEvent => ({
  type: 'webhook.erased.v1',
  data: { ...erasure, reason: 'account', ...changes },
});

export const timeKept = (time = '2026-11-20T09:30:00.000Z'): RetentionEvent => ({
  type: 'retention.time_kept.v1',
  data: { time, confirmations: 0, from_revision: 0 },
});
export const timeConfirmed = (time = '2026-11-20T09:30:00.000Z'): RetentionEvent => ({
  type: 'retention.time_confirmed.v1',
  data: { time, confirmations: 1, from_revision: 0, reason: 'It was stopped.' },
});
export const erasuresConfirmed = (before = '2026-11-20T09:30:00.000Z'): RetentionEvent => ({
  type: 'retention.erasures_confirmed.v1',
  data: { before, reason: 'The maximum is new.' },
});
export const restoreAccepted = (replaces = ['log_0']): LogEvent => ({
  type: 'log.restore_accepted.v1',
  data: { replaces, reason: 'a disk broke' },
});

export const treeDeclared = (origin = 'turnlog/log_0', vkeys = ['a-vkey']): LogEvent => ({
  type: 'log.tree_declared.v1',
  data: { origin, vkeys },
});
export const treeReplaced = (replaces = ['turnlog/log_0']): LogEvent => ({
  type: 'log.tree_replaced.v1',
  data: { replaces, reason: 'its files are lost' },
});

export const requestBegun = (changes: Partial<RequestBegunData> = {}): RequestEvent => ({
  type: 'request.begun.v1',
  data: {
    operation: 'createAgent',
    body_hmac: 'ab'.repeat(32),
    reserved: { id: AGENT_ID },
    ...changes,
  },
});

export const replayStarted = (changes: Partial<ReplayStartedData> = {}): ReplayEvent => ({
  type: 'replay.started.v1',
  data: {
    sessions: [{ session_id: 'session_1', revision: 4, turns: 2 }],
    tools: 'recorded',
    missing_tools: 'stop',
    concurrency: 2,
    budget_tokens: 1_000,
    ...changes,
  },
});
export const turnComparison = (
  turn: number,
  changes: Partial<TurnComparison> = {},
): TurnComparison => ({
  turn,
  replay_turn: turn,
  outcome: 'same',
  requests: 'same',
  tools: { added: 0, missing: 0, changed: 0, unanswered: 0 },
  recorded: { model: 'gpt', tokens: { prompt: 9, completion: 3, total: 12 }, duration_ms: 5 },
  replayed: { model: 'gpt', tokens: { prompt: 9, completion: 3, total: 12 }, duration_ms: 4 },
  checks: [],
  ...changes,
});
export const replaySessionStarted = (session_id = 'session_1'): ReplayEvent => ({
  type: 'replay.session_started.v1',
  data: { session_id, replay_session_id: 'session_2' },
});
export const replayTurnsCompared = (turns = [turnComparison(1)]): ReplayEvent => ({
  type: 'replay.turns_compared.v1',
  data: { session_id: 'session_1', turns },
});
export const replaySessionEnded = (session_id = 'session_1'): ReplayEvent => ({
  type: 'replay.session_ended.v1',
  data: { session_id, status: 'completed' },
});
export const replayEnded = (changes: Partial<ReplayEnd> = {}): ReplayEvent => ({
  type: 'replay.ended.v1',
  data: { status: 'completed', ...changes },
});
export const replayErased = (changes: Partial<Erasure> = {}): ReplayEvent => ({
  type: 'replay.erased.v1',
  data: { ...erasure, reason: 'account', ...changes },
});

/**
 * One of each type, with what it may hold beside its defaults. The compiler names a type that is
 * left out.
 */
export const EVERY_EVENT: Record<DomainEvent['type'], DomainEvent> = {
  'account.opened.v1': accountOpened(),
  'account.key_issued.v1': keyIssued('key_1'),
  'account.key_revoked.v1': keyRevoked('key_1'),
  'account.key_rotated.v1': keyRotated('key_1', 'key_2'),
  'account.limits_set.v1': limitsSet({ runs: 2, prompt_bytes: 1_000, requests_per_second: 5 }),
  'account.retention_set.v1': retentionSet({ minimum_days: 183, maximum_days: 365 }),
  'account.hold_set.v1': holdSet({ held: true, reason: 'Case 12' }),
  'account.audited.v1': accountAudited({ detail: 'revisions 0 to 9' }),
  'account.erased.v1': accountErased({ note: 'a-note' }),
  'agent.created.v1': agentCreated({ tool: 'calculator' }),
  'agent.updated.v1': agentUpdated(),
  'agent.deleted.v1': agentDeleted(),
  'agent.erased.v1': agentErased({ note: 'a-note' }),
  'log.restore_accepted.v1': restoreAccepted(),
  'log.tree_declared.v1': treeDeclared(),
  'log.tree_replaced.v1': treeReplaced(),
  'replay.started.v1': replayStarted({ instruction: 'Be brief.', checks: '[]', from_turn: 2 }),
  'replay.session_started.v1': replaySessionStarted(),
  'replay.turns_compared.v1': replayTurnsCompared(),
  'replay.session_ended.v1': replaySessionEnded(),
  'replay.ended.v1': replayEnded(),
  'replay.erased.v1': replayErased({ note: 'a-note' }),
  'retention.time_kept.v1': timeKept(),
  'retention.time_confirmed.v1': timeConfirmed(),
  'retention.erasures_confirmed.v1': erasuresConfirmed(),
  'request.begun.v1': requestBegun({ reserved: { id: 'session_1', revision: 4 } }),
  'session.started.v1': sessionStarted(AGENT_ID, {
    forked_from: { session_id: 'session_0', turn: 2 },
  }),
  'session.turn_started.v1': turnStarted(1, {
    idempotency_key: 'a-client-s-secret',
    context: { turns: 0, dropped: 2, compacted: 1 },
    summary_revision: 1,
  }),
  'session.tool_called.v1': toolCalled(1),
  'session.turn_completed.v1': turnCompleted(1, { calls: [modelCall] }),
  'session.turn_failed.v1': turnFailed(2, { calls: [modelCall] }),
  'session.turn_interrupted.v1': turnInterrupted(3),
  'session.compacted.v1': sessionCompacted(1, 2, { summary_revision: 1 }),
  'session.described.v1': sessionDescribed({ case: '12', 'to.do': 'an answer' }, 'A title'),
  'session.erased.v1': sessionErased({ note: 'a-note' }),
  'webhook.created.v1': webhookCreated({ types: ['turnlog.session.turn_completed.v1'] }),
  'webhook.changed.v1': webhookChanged({ url: 'https://example.com/other' }),
  'webhook.enabled.v1': webhookEnabled(),
  'webhook.disabled.v1': webhookDisabled(),
  'webhook.deleted.v1': webhookDeleted(),
  'webhook.erased.v1': webhookErased({ note: 'a-note' }),
};

/** The row of a session that has just begun; a new column of sessions is named here. */
export const sessionRow = (changes: Partial<SessionRow> = {}): SessionRow => ({
  session_id: 'session_1',
  agent_id: AGENT_ID,
  account_id: 'acct_1',
  status: 'idle',
  turns: 0,
  turns_completed: 0,
  turns_failed: 0,
  turns_interrupted: 0,
  title: null,
  labels: {},
  forked_from: null,
  fork_of: null,
  replay_id: null,
  replay_of: null,
  created_at: at(0),
  updated_at: at(0),
  revision: 0,
  ...changes,
});
