import type { ReplayEvent, ReplaySettings, ReplayStartedData } from './events.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import { streamId } from '../eventlog/streams.ts';
import { emptySums, addTurn } from './replaySums.ts';
import { replayEntry, type REPLAY_TABLES, type ReplayReplacements } from './tables.ts';
import { requireAbsent, requirePresent, type RowChange } from '../projections/change.ts';
import type { RowsOf } from '../readModels/table.ts';

type Rows = RowsOf<typeof REPLAY_TABLES>;
type ReplayRow = Rows['replays'];
type ReplaySessionRow = Rows['replay_sessions'];
type Change = RowChange<Rows>;

/** The number of turns to replay in the sessions. */
const turnsOf = ({ sessions, from_turn = 1, up_to_turn = Infinity }: ReplayStartedData): number =>
  sessions.reduce(
    (sum, { turns, shared_turns = 0 }) =>
      sum + Math.max(0, Math.min(turns, up_to_turn) - Math.max(shared_turns, from_turn - 1)),
    0,
  );

function replacementsIn({
  model,
  agent_id,
  agent_revision,
  instruction,
}: ReplaySettings): ReplayReplacements {
  return {
    ...(model !== undefined && { model }),
    ...(agent_id !== undefined && { agent_id }),
    ...(agent_revision !== undefined && { agent_revision }),
    instruction: instruction !== undefined,
  };
}

/** The changes that a later event makes to the replay's row. */
function patch(
  { sums }: ReplayRow,
  event: Exclude<ReplayEvent, { type: 'replay.started.v1' }>,
): Partial<ReplayRow> {
  const { sessions } = sums;
  switch (event.type) {
    case 'replay.session_started.v1':
      return {};
    case 'replay.turns_compared.v1':
      return { sums: event.data.turns.reduce(addTurn, sums) };
    case 'replay.session_ended.v1': {
      const { status, other_tokens: more = 0 } = event.data;
      const other_tokens = sums.other_tokens + more;
      const ended = { ...sessions, [status]: sessions[status] + 1 };
      return { sums: { ...sums, sessions: ended, other_tokens } };
    }
    case 'replay.ended.v1':
      return { status: event.data.status, code: event.data.code ?? null };
    case 'replay.erased.v1':
      return { status: 'erased' };
    default:
      return event satisfies never;
  }
}

/**
 * Maps an event of a replay's stream to changes of `replays`, `replay_settings`, `replay_sessions` and
 * `replay_turns`.
 */
export function projectReplay(recorded: RecordedEvent, event: ReplayEvent): Change[] {
  const replay_id = streamId(recorded.stream);
  const { revision } = recorded;
  const { account_id, recorded_at } = recorded.metadata;

  function change(before: ReplayRow | undefined): ReplayRow | undefined {
    if (event.type === 'replay.started.v1') {
      requireAbsent(before, 'replay');
      return {
        replay_id,
        account_id,
        status: 'running',
        code: null,
        replacements: replacementsIn(event.data),
        sums: emptySums(event.data.sessions.length, turnsOf(event.data)),
        created_at: recorded_at,
        updated_at: recorded_at,
        revision,
      };
    }
    if (event.type === 'replay.erased.v1' && !before) return undefined;
    const row = requirePresent(before, 'replay');
    return { ...row, ...patch(row, event), updated_at: recorded_at, revision };
  }

  const session = (
    session_id: string,
    after: (row: ReplaySessionRow | undefined) => ReplaySessionRow,
  ): Change => ({
    table: 'replay_sessions',
    key: [replay_id, session_id],
    change: (row) => ({ ...after(row), revision }),
  });
  const following = (session_id: string, more: Partial<ReplaySessionRow>): Change =>
    session(session_id, (row) => ({ ...requirePresent(row, 'replayed session'), ...more }));

  const row: Change = { table: 'replays', key: [replay_id], change };
  switch (event.type) {
    case 'replay.started.v1': {
      const { sessions, ...settings } = event.data;
      const settingsRow = { replay_id, settings, revision };
      return [
        row,
        { table: 'replay_settings', key: [replay_id], change: () => settingsRow },
        ...sessions.map(({ session_id, turns, shared_turns = 0 }) =>
          session(session_id, () => ({
            replay_id,
            session_id,
            turns: turns - shared_turns,
            status: 'waiting',
            code: null,
            replay_session_id: null,
            revision,
          })),
        ),
      ];
    }
    case 'replay.session_started.v1': {
      const { session_id, replay_session_id } = event.data;
      return [row, following(session_id, { status: 'running', replay_session_id })];
    }
    case 'replay.session_ended.v1': {
      const { session_id, status, code = null } = event.data;
      return [row, following(session_id, { status, code })];
    }
    case 'replay.turns_compared.v1':
      return [
        row,
        ...event.data.turns.map((comparison): Change => {
          const { session_id } = event.data;
          const { turn, outcome, checks } = comparison;
          const entry = replayEntry(session_id, turn);
          const failed_checks = checks.filter(({ passed }) => !passed).length;
          const of = { replay_id, entry, session_id, turn, outcome, failed_checks };
          const key = [replay_id, entry] as const;
          return { table: 'replay_turns', key, change: () => ({ ...of, comparison, revision }) };
        }),
      ];
    case 'replay.ended.v1':
    case 'replay.erased.v1':
      return [row];
    default:
      return event satisfies never;
  }
}
