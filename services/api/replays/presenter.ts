import type { Static } from 'typebox';
import type { ReplaySettings as Settings } from '../../../shared/replays/events.ts';
import type { ReplayRow, ReplaySessionRow } from '../../../shared/readModels/tables.ts';
import type { ComparedOutputs } from '../../../shared/replays/comparison/diffs.ts';
import type { Replay } from './schemas.ts';
import type { ReplaySettings } from './startSchemas.ts';
import type { ReplaySession, ReplayTurn } from './turnSchemas.ts';

/** A replay as the list shows it. */
export const presentReplay = ({
  replay_id,
  status,
  code,
  sums,
  created_at,
  updated_at,
}: ReplayRow): Static<typeof Replay> => ({
  replay_id,
  // What is erased is not found.
  status: status === 'erased' ? 'cancelled' : status,
  code,
  sums,
  created_at,
  updated_at,
});

/** What a replay was started with, as its client gave it; its texts stand open. */
export function presentReplaySettings({
  from_turn,
  up_to_turn,
  budget_tokens,
  checks,
  ...settings
}: Settings): Static<typeof ReplaySettings> {
  const turns = {
    ...(from_turn !== undefined && { from: from_turn }),
    ...(up_to_turn !== undefined && { up_to: up_to_turn }),
  };
  return {
    ...settings,
    ...(Object.keys(turns).length > 0 && { turns }),
    budget: { tokens: budget_tokens },
    ...(checks !== undefined && {
      checks: JSON.parse(checks) as NonNullable<Static<typeof ReplaySettings>['checks']>,
    }),
  };
}

/** A turn of a replay; of a changed one with what differs, where that can be shown. */
export const presentReplayTurn = ({
  row: { session_id, comparison },
  replay_session_id,
  difference,
}: ComparedOutputs): Static<typeof ReplayTurn> => ({
  session_id,
  replay_session_id,
  ...comparison,
  ...difference,
});

/** A session of a replay; one that had not ended before the replay ends with it. */
export function presentReplaySession(
  replay: ReplayRow,
  { replay_id: _replay, revision: _revision, ...session }: ReplaySessionRow,
): Static<typeof ReplaySession> {
  const { status, code } = presentReplay(replay);
  const isOpen = session.status === 'waiting' || session.status === 'running';
  return isOpen && status !== 'running' ? { ...session, status, code } : session;
}
