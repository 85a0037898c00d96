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

const EVENTS_PER_SESSION = 21;
const TURNS_PER_SESSION = 10;
const SESSIONS_AT_ONCE = 100;

/** One session of ten answered turns, as the service writes it. */
function session(accountId: string, agentId: string) {
  const stream = sessionStream(typeIds.typeId('session'));
  const recorded_at = new Date().toISOString();
  const turns = Array.from({ length: TURNS_PER_SESSION }, (_, index) => [
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

/**
 * Fills the data folder's log with about `count` events of sessions, through the event store
 * itself.
 */
export async function fillLog(folder: string, count: number): Promise<void> {
  const store = await openSqliteEventStore({ folder });
  const [accountId, agentId] = [typeIds.typeId('acct'), typeIds.typeId('agent')];
  for (let written = 0; written < count; written += EVENTS_PER_SESSION * SESSIONS_AT_ONCE) {
    const sessions = Array.from({ length: SESSIONS_AT_ONCE }, () => session(accountId, agentId));
    await Promise.all(
      sessions.map(({ stream, encoded }) => store.append(stream, 'no_stream', encoded)),
    );
  }
  await store.close();
}
