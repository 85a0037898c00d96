import { typeIds } from '../../infra/ids/typeIds.ts';
import { openSqliteEventStore } from '../../infra/sqlite/eventStore/eventStore.ts';
import { chainEvents, NO_STREAM } from '../../shared/eventlog/append.ts';
import {
  modelCall,
  sessionStarted,
  turnCompleted,
  turnStarted,
} from '../support/builders/events.ts';
import { sessionStream } from '../../shared/eventlog/streams.ts';
import type { EventStore } from '../../shared/ports/eventStore.ts';

const EVENTS_PER_SESSION = 21;
const TURNS_PER_SESSION = 10;
const SESSIONS_AT_ONCE = 100;
/** An append is limited in bytes. */
const EVENTS_AT_ONCE = 500;

interface LogOwner {
  accountId: string;
  agentId: string;
}

/** One session of answered turns, as the service writes it. */
function session({ accountId, agentId }: LogOwner, turnCount: number) {
  const stream = sessionStream(typeIds.typeId('session'));
  const recorded_at = new Date().toISOString();
  const turns = Array.from({ length: turnCount }, (_, index) => [
    turnStarted(index + 1, { input: 'What is the answer?' }),
    turnCompleted(index + 1, { output: 'The answer of the scripted model.', calls: [modelCall] }),
  ]).flat();
  const events = [sessionStarted(agentId), ...turns].map((event) => ({
    id: typeIds.uuid(),
    ...event,
  }));
  const authorship = {
    account_id: accountId,
    key_id: 'bench',
    request_id: 'bench',
    causation_id: 'bench',
    recorded_at,
  };
  return { stream, encoded: chainEvents(stream, NO_STREAM, events, authorship).encoded };
}

interface Sessions {
  count: number;
  turns: number;
}

async function appendSessions(
  { append }: Pick<EventStore, 'append'>,
  owner: LogOwner,
  { count, turns }: Sessions,
): Promise<void> {
  for (let written = 0; written < count; written += SESSIONS_AT_ONCE) {
    const length = Math.min(SESSIONS_AT_ONCE, count - written);
    const sessions = Array.from({ length }, () => session(owner, turns));
    await Promise.all(
      sessions.map(async ({ stream, encoded }) => {
        for (let at = 0; at < encoded.length; at += EVENTS_AT_ONCE) {
          const expected = at === 0 ? 'no_stream' : at - 1;
          await append(stream, expected, encoded.slice(at, at + EVENTS_AT_ONCE));
        }
      }),
    );
  }
}

/** Adds `count` sessions of `turns` answered turns to the log, through the event store itself. */
export async function addSessions(
  folder: string,
  owner: LogOwner,
  sessions: Sessions,
): Promise<void> {
  const store = await openSqliteEventStore({ folder });
  await appendSessions(store, owner, sessions);
  await store.close();
}

/** Adds about `count` events of sessions to a log. */
export async function addEvents(store: Pick<EventStore, 'append'>, count: number): Promise<void> {
  const owner = { accountId: typeIds.typeId('acct'), agentId: typeIds.typeId('agent') };
  const perRound = EVENTS_PER_SESSION * SESSIONS_AT_ONCE;
  const sessions = Math.ceil(count / perRound) * SESSIONS_AT_ONCE;
  await appendSessions(store, owner, { count: sessions, turns: TURNS_PER_SESSION });
}

/** Fills the data folder's log with about `count` events of sessions. */
export async function fillLog(folder: string, count: number): Promise<void> {
  const store = await openSqliteEventStore({ folder });
  await addEvents(store, count);
  await store.close();
}
