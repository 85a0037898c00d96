import { defined, searchNumber, type Search } from '../components/searchParams.ts';

/** Which turns of a replay the list shows, the first one unless an address says otherwise. */
export const TURN_FILTERS = [
  'changed',
  'failed',
  'checks_failed',
  'same',
  'skipped',
  'all',
] as const;
export type TurnFilter = (typeof TURN_FILTERS)[number];

/** A recorded turn: its session and its number. */
export interface TurnId {
  session_id: string;
  turn: number;
}

export const formatTurnId = ({ session_id, turn }: TurnId): string => `${session_id}.${turn}`;

/** The turn of an address; undefined if it names none. */
export function parseTurnId(text: unknown): TurnId | undefined {
  const [, session_id, turn] = /^(session_[0-9a-z]{26})\.([1-9]\d{0,8})$/.exec(String(text)) ?? [];
  return session_id === undefined ? undefined : { session_id, turn: Number(turn) };
}

/** The cursor after which the list of turns begins with this one. */
export const cursorBefore = ({ session_id, turn }: TurnId): string =>
  `${session_id}.${String(turn - 1).padStart(10, '0')}`;

/** The part of an address that says what of a replay is shown; `compared` as `session_….12`. */
export const parseReplaySearch = ({ only, compared }: Search) =>
  defined({
    only: TURN_FILTERS.find((each) => each === only),
    compared: parseTurnId(compared) && String(compared),
  });

/** The initial values of the form of a new replay; `turn` is the first one to replay. */
export const parseNewReplaySearch = ({ session, turn }: Search) =>
  defined({
    session: typeof session === 'string' ? session : undefined,
    turn: searchNumber(turn, 1),
  });
