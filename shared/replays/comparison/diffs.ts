import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { yieldToEventLoop } from '../../lib/concurrency/yieldToEventLoop.ts';
import { LIMITS } from '../../limits.ts';
import type { PageOf, ReadModels } from '../../ports/readModels.ts';
import type { DiffPart, TextDiffer } from './textDiffer.ts';
import type { ReplaySessionRow, ReplayTurnRow } from '../../readModels/tables.ts';
import { readTranscript } from '../../sessions/history/transcript.ts';

type Source = StreamSource & {
  readModels: Pick<ReadModels, 'findTranscript' | 'findSession' | 'findReplaySession'>;
  differ: TextDiffer;
};

/** The differences between two outputs, or why they are omitted. */
type OutputDiff = { diff: DiffPart[] } | { diff_omitted: 'erased' | 'too_long' | 'too_different' };

/** A replayed turn and, if its output changed, the differences. */
export interface ComparedOutputs {
  row: ReplayTurnRow;
  replay_session_id: string | null;
  difference?: OutputDiff;
}

/** Approximate size of a part in JSON, without its text, in characters. */
const PART_CHARS = 32;

/** The output of a turn; undefined if its session is erased or no longer contains it. */
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

/** The difference is `erased` if either session is. */
async function differenceOf(
  source: Source,
  accountId: string,
  { replay_session_id, row: { session_id, turn, comparison } }: ComparedOutputs,
): Promise<OutputDiff | undefined> {
  const { outcome, replay_turn } = comparison;
  if (outcome !== 'changed' || !replay_session_id || !replay_turn) return undefined;
  const replayedTurn = { session_id: replay_session_id, turn: replay_turn };
  const recorded = await outputOf(source, accountId, { session_id, turn });
  const replayed = await outputOf(source, accountId, replayedTurn);
  await yieldToEventLoop(accountId);
  if (recorded === undefined || replayed === undefined) return { diff_omitted: 'erased' };
  const longest = Math.max(recorded.length, replayed.length);
  if (longest > LIMITS.replays.diffChars) return { diff_omitted: 'too_long' };
  const diff = await source.differ.diffOf({ recorded, replayed }, accountId);
  return diff ? { diff } : { diff_omitted: 'too_different' };
}

const charsOf = (difference: OutputDiff | undefined): number =>
  difference && 'diff' in difference
    ? difference.diff.reduce((chars, { text }) => chars + text.length + PART_CHARS, 0)
    : 0;

/**
 * Adds the differences between outputs to a page of turns, one at a time. The page ends early when
 * the texts fill it or the time limit is reached.
 */
export async function withDiffs(
  source: Source,
  accountId: string,
  { rows, more }: PageOf<ReplayTurnRow>,
): Promise<PageOf<ComparedOutputs>> {
  const sessions = new Map<string, ReplaySessionRow | undefined>();
  const compared: ComparedOutputs[] = [];
  const startedAt = performance.now();
  let chars = 0;
  for (const row of rows) {
    const { replay_id, session_id } = row;
    if (!sessions.has(session_id))
      sessions.set(session_id, await source.readModels.findReplaySession(replay_id, session_id));
    const replay_session_id = sessions.get(session_id)?.replay_session_id ?? null;
    const outputs: ComparedOutputs = { row, replay_session_id };
    const difference = await differenceOf(source, accountId, outputs);
    chars += charsOf(difference);
    if (chars > LIMITS.http.pageBytes && compared.length > 0) return { rows: compared, more: true };
    compared.push({ ...outputs, ...(difference && { difference }) });
    if (performance.now() - startedAt > LIMITS.replays.pageDiffMs && compared.length < rows.length)
      return { rows: compared, more: true };
  }
  return { rows: compared, more };
}
