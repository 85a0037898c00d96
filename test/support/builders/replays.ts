import { authorOf, prepareEvents } from '../../../shared/commandHandling/prepareEvents.ts';
import { handle } from '../../../shared/commandHandling/handle.ts';
import { wholeStreamTarget } from '../../../shared/commandHandling/targetStream.ts';
import { replay, type ReplayState } from '../../../shared/replays/decider.ts';
import type { ReplayEvent, ReplaySettings } from '../../../shared/replays/events.ts';
import type { SessionEvent } from '../../../shared/sessions/events.ts';
import { NO_STREAM, appendEvents } from '../../../shared/eventlog/append.ts';
import { readPage } from '../../../shared/eventlog/reading/readWhole.ts';
import type { StreamSource } from '../../../shared/eventlog/reading/reportDamage.ts';
import { replayStream, sessionStream } from '../../../shared/eventlog/streams.ts';
import type { DecodedEvent } from '../../../shared/eventlog/reading/wholeStream.ts';
import { asOperator, eventually } from '../processes/operator.ts';

/** All events of a stream, with their texts. */
async function readAll(source: StreamSource, stream: string): Promise<DecodedEvent[]> {
  const events: DecodedEvent[] = [];
  for (;;) {
    const page = { direction: 'forwards', from: events.length, limit: 500 } as const;
    const read = await readPage(source, stream, page);
    if (read.length === 0) return events;
    events.push(...read);
  }
}

/** The events of a session, as they were decided. */
export const eventsOf = (folder: string, sessionId: string): Promise<SessionEvent[]> =>
  asOperator(folder, async (operator) =>
    (await readAll(operator, sessionStream(sessionId))).map(({ event }) => event as SessionEvent),
  );

/** What a test says of a replay; by default its tools answer from the log. */
export type Asked = Partial<ReplaySettings> & { sessions: readonly string[] };

const DEFAULTS: ReplaySettings = {
  tools: 'recorded',
  missing_tools: 'stop',
  concurrency: 2,
  budget_tokens: 1_000_000_000,
};

/** Starts a replay of whole sessions, on the data folder of a running service; resolves with its id. */
export const startReplayOf = (folder: string, { sessions, ...settings }: Asked): Promise<string> =>
  asOperator(folder, async (operator) => {
    const replay_id = operator.ids.typeId('replay');
    let account_id = '';
    const asked = [];
    for (const session_id of sessions) {
      const events = await readAll(operator, sessionStream(session_id));
      account_id = events[0]!.recorded.metadata.account_id;
      const turns = events.filter(({ event }) => event.type === 'session.turn_started.v1').length;
      asked.push({ session_id, revision: events.length - 1, turns });
    }
    const data = { ...DEFAULTS, ...settings, sessions: asked };
    const events = replay.decide({ type: 'start_replay', replay: data }, replay.initialState);
    const author = authorOf({ account_id, key_id: 'key_1', request_id: 'test' });
    const facts = await prepareEvents(operator, author, NO_STREAM, events);
    const target = { stream: replayStream(replay_id), head: NO_STREAM };
    await appendEvents(operator.store, target, facts);
    return replay_id;
  });

/** Cancels it, as a client's request in any process does. */
export const cancelReplayOf = (folder: string, replayId: string): Promise<void> =>
  asOperator(folder, async (operator) => {
    const target = wholeStreamTarget(replayStream(replayId), replay);
    const actor = { account_id: 'acct_1', key_id: 'key_1', request_id: 'test' };
    await handle(operator, actor, target, { type: 'end_replay', status: 'cancelled' });
  });

export interface ToldReplay {
  events: ReplayEvent[];
  state: ReplayState;
  /** Ids of the sessions that it made, by the recorded ones. */
  made: ReadonlyMap<string, string>;
}

async function tell(operator: StreamSource, replayId: string): Promise<ToldReplay> {
  const known = await readAll(operator, replayStream(replayId));
  const events = known.map(({ event }) => event as ReplayEvent);
  const made = events.flatMap((event): [string, string][] =>
    event.type === 'replay.session_started.v1'
      ? [[event.data.session_id, event.data.replay_session_id]]
      : [],
  );
  const state = events.reduce(replay.evolve, replay.initialState);
  return { events, state, made: new Map(made) };
}

/** What a replay has recorded by now. */
export const toldOf = (folder: string, replayId: string): Promise<ToldReplay> =>
  asOperator(folder, (operator) => tell(operator, replayId));

/** Waits until a replay has ended, and the read models show it; the test's time limit is the bound. */
export const endOf = (folder: string, replayId: string): Promise<ToldReplay> =>
  asOperator(folder, async (operator) => {
    const told = await eventually(
      () => tell(operator, replayId),
      ({ state }) => state.status === 'ended',
    );
    await operator.readModels();
    return told;
  });

export const comparisonsIn = ({ events }: ToldReplay) =>
  events.flatMap((event) => (event.type === 'replay.turns_compared.v1' ? event.data.turns : []));
