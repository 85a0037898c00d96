type Search = Readonly<Record<string, unknown>>;

const TEXT_FILTERS = [
  'q',
  'agent_id',
  'created_from',
  'created_to',
  'updated_from',
  'updated_to',
  'replay_id',
] as const;
const STATUSES = ['idle', 'running'] as const;
const OUTCOMES = ['completed', 'failed', 'interrupted'] as const;

/** The filters of the list, named as in the API. */
export interface SessionFilters extends Partial<Record<(typeof TEXT_FILTERS)[number], string>> {
  status?: (typeof STATUSES)[number];
  outcome?: (typeof OUTCOMES)[number];
  label?: string[];
}

/** The text of a value that the router may have read as a number. */
const textOf = (value: unknown): string | undefined =>
  typeof value === 'number' || typeof value === 'string' ? String(value) || undefined : undefined;

const numberOf = (value: unknown, least: number): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= least ? (value as number) : undefined;

/** The object without its undefined members. */
const defined = <Members extends object>(members: Members): Members =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Members;

/** The filters in an address. Omits values that no filter has. */
export function parseListSearch(search: Search): SessionFilters {
  const { label, status, outcome } = search;
  const labels = (Array.isArray(label) ? label : [label]).flatMap((each) => textOf(each) ?? []);
  return defined({
    ...Object.fromEntries(TEXT_FILTERS.map((name) => [name, textOf(search[name])])),
    status: STATUSES.find((each) => each === status),
    outcome: OUTCOMES.find((each) => each === outcome),
    label: labels.length > 0 ? labels : undefined,
  } as SessionFilters);
}

/** The part of a session that an address shows. */
export interface SessionSearch {
  tab?: 'timeline' | 'events';
  /** The turn or the event to show. */
  turn?: number;
  event?: number;
}

/** The parts of a session's address. An event is shown in the event history. */
export function parseSessionSearch({ tab, turn, event }: Search): SessionSearch {
  const revision = numberOf(event, 0);
  const shown = revision === undefined ? tab : 'events';
  return defined({
    tab: shown === 'events' || shown === 'timeline' ? shown : undefined,
    turn: numberOf(turn, 1),
    event: revision,
  } as SessionSearch);
}
