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

/** The part of an address that says what of a replay is shown; `compared` as `session_….12`. */
export interface ReplaySearch {
  only?: TurnFilter;
  compared?: string;
}

/** The initial values of the form of a new replay; `turn` is the first one to replay. */
export interface NewReplaySearch {
  session?: string;
  turn?: number;
}

type Search = Readonly<Record<string, unknown>>;

export const formatTurnId = ({ session_id, turn }: TurnId): string => `${session_id}.${turn}`;

/** The turn of an address; undefined if it names none. */
export function parseTurnId(text: unknown): TurnId | undefined {
  const [, session_id, turn] = /^(session_[0-9a-z]{26})\.([1-9]\d{0,8})$/.exec(String(text)) ?? [];
  return session_id === undefined ? undefined : { session_id, turn: Number(turn) };
}

/** The cursor after which the list of turns begins with this one. */
export const cursorBefore = ({ session_id, turn }: TurnId): string =>
  `${session_id}.${String(turn - 1).padStart(10, '0')}`;

export function parseReplaySearch({ only, compared }: Search): ReplaySearch {
  const filter = TURN_FILTERS.find((each) => each === only);
  return {
    ...(filter && { only: filter }),
    ...(parseTurnId(compared) && { compared: String(compared) }),
  };
}

export const parseNewReplaySearch = ({ session, turn }: Search): NewReplaySearch => ({
  ...(typeof session === 'string' && { session }),
  ...(Number.isSafeInteger(turn) && { turn: Number(turn) }),
});
