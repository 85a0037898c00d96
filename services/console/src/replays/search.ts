/** Which turns of a replay the list shows. `changed` needs no mention in an address. */
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

/** The part of an address that says what of a replay is shown. */
export interface ReplaySearch {
  only?: TurnFilter;
  /** The compared turn that is open, as `session_….12`. */
  turn?: string;
}

/** What the form of a new replay begins with. */
export interface NewReplaySearch {
  /** Ids of sessions, separated by commas. */
  session?: string;
  /** The first turn to replay. */
  turn?: number;
  agent_id?: string;
}

type Search = Readonly<Record<string, unknown>>;

const TURN = /^(session_[0-9a-z]{26})\.([1-9]\d{0,8})$/;
const DIGITS = 10;

export const formatTurnId = ({ session_id, turn }: TurnId): string => `${session_id}.${turn}`;

/** The turn of an address; undefined if it names none. */
export function parseTurnId(text: string | undefined): TurnId | undefined {
  const [, session_id, turn] = TURN.exec(text ?? '') ?? [];
  return session_id === undefined ? undefined : { session_id, turn: Number(turn) };
}

/** The cursor of the list before a turn, so that the list begins with it. */
export const cursorBefore = ({ session_id, turn }: TurnId): string =>
  `${session_id}.${String(turn - 1).padStart(DIGITS, '0')}`;

export function parseReplaySearch({ only, turn }: Search): ReplaySearch {
  const filter = TURN_FILTERS.find((each) => each === only);
  const id = typeof turn === 'string' ? parseTurnId(turn) : undefined;
  return {
    ...(filter !== undefined && filter !== 'changed' && { only: filter }),
    ...(id && { turn: formatTurnId(id) }),
  };
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';

export function parseNewReplaySearch({ session, turn, agent_id }: Search): NewReplaySearch {
  return {
    ...(isText(session) && { session }),
    ...(Number.isSafeInteger(turn) && Number(turn) > 0 && { turn: Number(turn) }),
    ...(isText(agent_id) && { agent_id }),
  };
}
