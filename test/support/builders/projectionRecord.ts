/**
 * What the projections make of one event of each type, to be compared with what they made when that
 * was last recorded.
 */
import {
  belongsIn,
  STREAM_KINDS,
  type StreamKind,
  type DomainEvent,
} from '../../../shared/eventlog/eventTypes.ts';
import { createHash } from 'node:crypto';
import type { InterruptionReason, TurnFailedData } from '../../../shared/sessions/events.ts';
import { fold, rowMaps } from '../../../shared/projections/fold.ts';
import { planBatch } from '../../../shared/projections/plan.ts';
import { TABLES, tableNames, type TableName } from '../../../shared/readModels/tables.ts';
import { PROJECTION_LOGIC } from '../../../shared/readModels/version.ts';
import {
  accountAudited,
  agentData,
  at,
  EVERY_EVENT,
  keyData,
  sessionStarted,
  toolCalled,
  turnCompleted,
  turnStarted,
  replayStarted,
  requestBegun,
  timeKept,
  restoreAccepted,
  webhookCreated,
} from './events.ts';
import { recordHistory } from './history.ts';

type EventType = DomainEvent['type'];

const opened: DomainEvent = { type: 'account.opened.v1', data: { name: 'Acme' } };
const key = keyData('key_1', { expires_at: at(90) });
const issued: DomainEvent = { type: 'account.key_issued.v1', data: key };
const created: DomainEvent = { type: 'agent.created.v1', data: agentData({ tool: 'clock' }) };
const running = [sessionStarted('agent_1'), turnStarted(1)];
const called = [...running, toolCalled(1)];

const failed = (turn: number, changes: Partial<TurnFailedData> = {}): DomainEvent => ({
  type: 'session.turn_failed.v1',
  data: { turn, code: 'model_error', message: 'The model failed.', calls: [], ...changes },
});

const REASONS: InterruptionReason[] = ['crash', 'cancelled', 'deadline'];

/** What a stream of the kind begins with. */
const BEGINNINGS: Record<StreamKind, DomainEvent> = {
  account: opened,
  agent: created,
  audit: accountAudited(),
  log: restoreAccepted(),
  replay: replayStarted(),
  request: requestBegun(),
  retention: timeKept(),
  session: sessionStarted('agent_1'),
  webhook: webhookCreated({ types: ['turnlog.session.turn_completed.v1'] }),
};

/** By its type, each event behind those that it needs before it, where that is more than the beginning of its stream. */
const HISTORIES: Partial<Record<EventType, DomainEvent[]>> = {
  'account.key_issued.v1': [opened, issued],
  'account.erased.v1': [opened, issued, EVERY_EVENT['account.erased.v1']],
  'account.key_revoked.v1': [opened, issued, { type: 'account.key_revoked.v1', data: key }],
  'account.key_rotated.v1': [opened, issued, EVERY_EVENT['account.key_rotated.v1']],
  'webhook.enabled.v1': [
    webhookCreated(),
    EVERY_EVENT['webhook.disabled.v1'],
    EVERY_EVENT['webhook.enabled.v1'],
  ],
  'session.turn_started.v1': running,
  'session.tool_called.v1': called,
  'session.turn_completed.v1': [...called, turnCompleted(1, { tool_used: 'calculator' })],
  'session.turn_failed.v1': [
    ...called,
    failed(1, { tokens: { prompt: 9, completion: 3, total: 12 } }),
    turnStarted(2),
    failed(2),
  ],
  'session.erased.v1': [...called, turnCompleted(1), EVERY_EVENT['session.erased.v1']],
  'session.turn_interrupted.v1': [
    sessionStarted('agent_1'),
    ...REASONS.flatMap((reason, index): DomainEvent[] => [
      turnStarted(index + 1),
      { type: 'session.turn_interrupted.v1', data: { turn: index + 1, reason } },
    ]),
  ],
};

/** The kind of the streams that hold events of the type. */
export const kindOf = (type: EventType): StreamKind =>
  STREAM_KINDS.find((kind) => belongsIn(`${kind}-1`, type))!;

/** The events of a stream up to one of the type, valid together. */
export function historyOf(type: EventType): DomainEvent[] {
  const beginning = BEGINNINGS[kindOf(type)];
  if (type === beginning.type) return [beginning];
  return HISTORIES[type] ?? [beginning, EVERY_EVENT[type]];
}

export interface ProjectionRecord {
  logic: number;
  /** A hash of the history of each event type. */
  events: Record<string, string>;
  /** `<event type> <table>/<row> <column>` and its value as JSON. */
  values: Record<string, string>;
}

const TYPES = Object.keys(EVERY_EVENT) as EventType[];

const hashOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 12);

/** Rows of `storage` count the bytes of every event: they say nothing about its projection. */
const RECORDED = tableNames.filter((table) => table !== 'storage');

function valuesAfter(type: EventType): [string, string][] {
  const { record } = recordHistory();
  const stream = `${kindOf(type)}-id_1`;
  const rows = rowMaps();
  const history = historyOf(type).map((event) => record({ stream }, event));
  const { parked } = fold(planBatch(history), rows, new Set());
  // An event that needs more before it would else be recorded as one that changes nothing.
  if (parked.length > 0)
    throw new Error(`the history of ${type} is not valid: ${parked[0]?.error}`);
  return RECORDED.flatMap((table) =>
    [...rows[table]].flatMap(([id, row]) =>
      Object.entries(row).map(([column, value]): [string, string] => [
        `${type} ${table}/${id} ${column}`,
        JSON.stringify(value),
      ]),
    ),
  );
}

/** The record that would be made now. */
export const currentRecord = (): ProjectionRecord => ({
  logic: PROJECTION_LOGIC,
  events: Object.fromEntries(TYPES.map((type) => [type, hashOf(historyOf(type))])),
  values: Object.fromEntries(TYPES.flatMap(valuesAfter)),
});

const typeOf = (place: string): string => place.split(' ')[0]!;
/** `<table> <column>` of a place. */
const columnOf = (place: string): string => place.replace(/^\S+ ([^/]+)\/\S+ /, '$1 ');

function isDescribed(place: string): boolean {
  const [table, column] = columnOf(place).split(' ') as [TableName, string];
  return Object.hasOwn(TABLES[table]?.columns ?? {}, column);
}

/**
 * Where the record and now differ, and what is to be done about it. A column that is new, or gone,
 * changes the tables' description and so the version by itself; other rows of the same events
 * don't.
 */
export function differences(recorded: ProjectionRecord, now: ProjectionRecord) {
  const columns = new Set(Object.keys(recorded.values).map(columnOf));
  const places = [...new Set([...Object.keys(recorded.values), ...Object.keys(now.values)])].filter(
    (place) => recorded.values[place] !== now.values[place],
  );
  const isLogic = (place: string): boolean =>
    recorded.logic === now.logic &&
    recorded.events[typeOf(place)] === now.events[typeOf(place)] &&
    columns.has(columnOf(place)) &&
    isDescribed(place);
  return {
    raiseProjectionLogicFor: places.filter(isLogic),
    runNpmRunProjectionsFor: [
      ...(recorded.logic === now.logic ? [] : ['PROJECTION_LOGIC']),
      ...places.filter((place) => !isLogic(place)),
    ],
  };
}
