import { defined, searchNumber, searchText, type Search } from '../components/searchParams.ts';

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

/** The filters in an address. Omits values that no filter has. */
export function parseListSearch(search: Search): SessionFilters {
  const { label, status, outcome } = search;
  const labels = (Array.isArray(label) ? label : [label]).flatMap((each) => searchText(each) ?? []);
  return defined({
    ...Object.fromEntries(TEXT_FILTERS.map((name) => [name, searchText(search[name])])),
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
  const revision = searchNumber(event, 0);
  const shown = revision === undefined ? tab : 'events';
  return defined({
    tab: shown === 'events' || shown === 'timeline' ? shown : undefined,
    turn: searchNumber(turn, 1),
    event: revision,
  } as SessionSearch);
}
