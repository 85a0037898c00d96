import { isTurnlogError } from '../errors.ts';
import type { StreamSource } from '../eventlog/noteDamage.ts';
import { giveWay } from '../giveWay.ts';
import { LIMITS } from '../limits.ts';
import type { PageOf, ReadModels } from '../ports/readModels.ts';
import type { ReplaySessionRow, ReplayTurnRow } from '../readModels/tables.ts';
import { readTranscript } from './transcript.ts';

type Source = StreamSource & {
  readModels: Pick<ReadModels, 'findTranscript' | 'findSession' | 'findReplaySession'>;
};

/** A turn of a replay, and, where its output is another one, both. */
export interface ComparedOutputs {
  row: ReplayTurnRow;
  replay_session_id: string | null;
  /** `erased` where one of the two sessions is. */
  outputs?: { recorded: string; replayed: string } | 'erased';
}

/** The output of a turn; undefined where its session is erased, or does not show it. */
async function outputOf(
  source: Source,
  accountId: string,
  { session_id, turn }: { session_id: string; turn: number },
): Promise<string | undefined> {
  const page = { after: turn - 1, limit: 1, bytes: LIMITS.http.pageBytes };
  try {
    const { turns } = await readTranscript(source, accountId, session_id, page);
    const [row] = turns.rows;
    return row?.turn === turn ? (row.output ?? undefined) : undefined;
  } catch (error) {
    const isGone = ['session_erased', 'session_not_found'] as const;
    if (isGone.some((code) => isTurnlogError(error, code))) return undefined;
    throw error;
  }
}

/**
 * The turns of a page with the outputs that differ, one after the other, until their texts fill a
 * page. Errors: `stream_damaged` (noted), `key_missing`, `store_unavailable`.
 */
export async function withOutputs(
  source: Source,
  accountId: string,
  { rows, more }: PageOf<ReplayTurnRow>,
): Promise<PageOf<ComparedOutputs>> {
  const sessions = new Map<string, ReplaySessionRow | undefined>();
  const shown: ComparedOutputs[] = [];
  let chars = 0;
  for (const row of rows) {
    const { replay_id, session_id, turn, comparison } = row;
    if (!sessions.has(session_id))
      sessions.set(session_id, await source.readModels.findReplaySession(replay_id, session_id));
    const replay_session_id = sessions.get(session_id)?.replay_session_id ?? null;
    const beside: ComparedOutputs = { row, replay_session_id };
    if (comparison.outcome === 'changed' && replay_session_id && comparison.replay_turn) {
      const replayedTurn = { session_id: replay_session_id, turn: comparison.replay_turn };
      const recorded = await outputOf(source, accountId, { session_id, turn });
      const replayed = await outputOf(source, accountId, replayedTurn);
      const gone = recorded === undefined || replayed === undefined;
      beside.outputs = gone ? 'erased' : { recorded, replayed };
      if (!gone) chars += recorded.length + replayed.length;
      await giveWay(accountId);
    }
    if (chars > LIMITS.http.pageBytes && shown.length > 0) return { rows: shown, more: true };
    shown.push(beside);
  }
  return { rows: shown, more };
}
