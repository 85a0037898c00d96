import type { Schema } from '../../api/client.ts';
import { NumberedView } from './NumberedView.tsx';
import { readTurns, type Turn } from './sessionQueries.ts';
import { TurnCard } from './TurnCard.tsx';

const PAGE_TURNS = 20;
const ESTIMATED_PX = 260;

export interface TurnsProps {
  session: Schema<'Transcript'>;
  /** The first turn that was not erased. */
  first: number;
  /** The turn that the address names. */
  target: number | undefined;
}

/** The turns of a session as a conversation. */
export function Transcript({ session, first, target }: TurnsProps) {
  const { session_id, turn_count } = session;
  const list = {
    queryKey: ['session', session_id, 'entries', 'turns'],
    count: turn_count - first + 1,
    pageSize: PAGE_TURNS,
    read: (start: number, end: number, signal: AbortSignal): Promise<Turn[]> =>
      readTurns(session_id, { from: first + start, to: first + end - 1 }, signal),
  };
  return (
    <NumberedView
      label="Transcript"
      list={list}
      estimate={ESTIMATED_PX}
      target={target === undefined ? undefined : Math.max(target - first, 0)}
    >
      {(turn) => <TurnCard sessionId={session_id} turn={turn} isTarget={turn.turn === target} />}
    </NumberedView>
  );
}
