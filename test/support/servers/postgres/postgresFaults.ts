import { liveSchema, VERSION } from '../../../../infra/postgres/readModels/schema.ts';
import { fold, rowMaps } from '../../../../shared/projections/fold.ts';
import { planBatch } from '../../../../shared/projections/plan.ts';
import type {
  EventLog,
  EventStore,
  Position,
  StoredEvent,
} from '../../../../shared/ports/eventStore.ts';
import { execute } from './postgresDatabase.ts';
import { appendTo } from '../../stores/projections/projector.ts';
import { sessionStarted, toolCalled, turnCompleted, turnStarted } from '../../builders/events.ts';

/**
 * Appends the session of this number: one turn of three tool calls, of which none may be applied
 * twice.
 */
export const appendSession = (store: EventStore, number: number): Promise<Position> =>
  appendTo(store, `session-session_${String(number).padStart(6, '0')}`, [
    sessionStarted('agent_1'),
    turnStarted(1),
    ...['a', 'b', 'c'].map((call_id) => toolCalled(1, { call_id })),
    turnCompleted(1),
  ]);

/** All events that are in the log now. */
export async function readLog(log: Pick<EventLog, 'subscribe'>): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  for await (const batch of log.subscribe({
    batchSize: 1000,
    signal: new AbortController().signal,
  })) {
    events.push(...batch.events);
    if (batch.caughtUp) break;
  }
  return events;
}

const LIVE = liveSchema(VERSION);

interface Found {
  position: Position | null;
  sessions: { session_id: string }[] | null;
  turns: { session_id: string; turn: number }[] | null;
}

/**
 * Checkpoint and rows at one moment, and the rows that the log's events up to that checkpoint make.
 */
export async function foundAndDue(databaseUrl: string, log: Pick<EventLog, 'subscribe'>) {
  const [row] = await execute(
    databaseUrl,
    `SELECT (SELECT position FROM turnlog.projections WHERE slot = 'live') AS position,
       (SELECT json_agg(sessions ORDER BY session_id) FROM ${LIVE}.sessions) AS sessions,
       (SELECT json_agg(turns ORDER BY session_id, turn) FROM ${LIVE}.turns) AS turns`,
  );
  const { position, sessions, turns } = row as unknown as Found;
  const due = rowMaps();
  fold(
    planBatch(
      (await readLog(log)).filter((event) => position !== null && event.position <= position),
    ),
    due,
    new Set(),
  );
  const inOrder = <Row extends { session_id: string }>(rows: Iterable<Row>): Row[] =>
    [...rows].toSorted((a, b) => (a.session_id < b.session_id ? -1 : 1));
  return {
    found: { sessions: sessions ?? [], turns: turns ?? [] },
    due: { sessions: inOrder(due.sessions.values()), turns: inOrder(due.turns.values()) },
  };
}
