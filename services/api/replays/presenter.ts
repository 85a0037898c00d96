import type { Static } from 'typebox';
import type { ReplaySettings as Settings } from '../../../shared/replays/events.ts';
import type { ReplayRow, ReplaySessionRow } from '../../../shared/readModels/tables.ts';
import type { ComparedOutputs } from '../../../shared/replays/comparison/diffs.ts';
import type { Replay, ReplaySettings, ReplaySession, ReplayTurn } from './schemas.ts';

/** A replay without its settings. */
export const presentReplay = ({
  replay_id,
  status,
  code,
  replacements,
  sums,
  created_at,
  updated_at,
  revision,
}: ReplayRow): Static<typeof Replay> => ({
  replay_id,
  // Erased replays are not found.
  status: status === 'erased' ? 'cancelled' : status,
  code,
  replacements,
  sums,
  created_at,
  updated_at,
  revision,
});

/** The settings of a replay as its client sent them, with their texts decrypted. */
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

/** A turn of a replay, with the difference of its output where that can be shown. */
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

/** A session of a replay. Open sessions end with their replay. */
export function presentReplaySession(
  replay: ReplayRow,
  { replay_id: _replay, revision: _revision, ...session }: ReplaySessionRow,
): Static<typeof ReplaySession> {
  const { status, code } = presentReplay(replay);
  const isOpen = session.status === 'waiting' || session.status === 'running';
  return isOpen && status !== 'running' ? { ...session, status, code } : session;
}
