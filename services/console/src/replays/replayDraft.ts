import type { Schema } from '../api/client.ts';
import type { NewReplaySearch } from './search.ts';

type Body = Schema<'StartReplayRequest'>;

export const CHECK_KINDS = ['equals', 'contains', 'matches', 'json_schema', 'judge'] as const;

/** A check as it is typed. */
export interface DraftCheck {
  kind: (typeof CHECK_KINDS)[number];
  /** The text, the pattern, the schema as JSON, or the criteria. */
  text: string;
  /** Of a judge. */
  model: string;
}

/** A new replay as it is typed: empty texts are left out of the request. */
export interface ReplayDraft {
  source: 'filter' | 'sessions';
  /** Ids, separated by commas or white space. */
  sessions: string;
  filterAgent: string;
  words: string;
  label: string;
  createdFrom: string;
  createdTo: string;
  agent: string;
  revision: string;
  model: string;
  instruction: string;
  tools: Body['tools'];
  missingTools: Body['missing_tools'];
  fromTurn: string;
  upToTurn: string;
  concurrency: string;
  budget: string;
  checks: DraftCheck[];
}

export const emptyDraft = ({ session, turn, agent_id }: NewReplaySearch): ReplayDraft => ({
  source: session === undefined ? 'filter' : 'sessions',
  sessions: session?.replaceAll(',', '\n') ?? '',
  filterAgent: agent_id ?? '',
  words: '',
  label: '',
  createdFrom: '',
  createdTo: '',
  agent: '',
  revision: '',
  model: '',
  instruction: '',
  tools: 'recorded',
  missingTools: 'stop',
  fromTurn: turn === undefined ? '' : String(turn),
  upToTurn: '',
  concurrency: '1',
  budget: '1000000',
  checks: [],
});

/** What is wrong with a draft, by its member; of a check by `checks.<number>`. */
export type DraftProblems = Readonly<Record<string, string>>;

const NUMBERS = {
  revision: ['revision', 0],
  fromTurn: ['first turn', 1],
  upToTurn: ['last turn', 1],
  concurrency: ['number of sessions at a time', 1],
  budget: ['token budget', 1],
} as const;

const isNumber = (text: string, least: number): boolean =>
  /^\d{1,15}$/.test(text) && Number(text) >= least;

export const sessionIdsOf = ({ sessions }: Pick<ReplayDraft, 'sessions'>): string[] => [
  ...new Set(sessions.split(/[\s,]+/).filter((id) => id !== '')),
];

/** The problems that the form can find. The service finds the others. */
export function findProblems(draft: ReplayDraft): DraftProblems {
  const problems: Record<string, string> = {};
  if (draft.source === 'sessions' && sessionIdsOf(draft).length === 0)
    problems['sessions'] = 'Enter the id of at least one session.';
  for (const [name, [what, least]] of Object.entries(NUMBERS)) {
    const text = draft[name as keyof typeof NUMBERS];
    if (text !== '' && !isNumber(text, least))
      problems[name] = `The ${what} must be a whole number of at least ${least}.`;
  }
  for (const [at, { kind, text, model }] of draft.checks.entries()) {
    const name = `checks.${at}`;
    if (text === '' && kind !== 'equals') problems[name] = 'Enter what is checked.';
    else if (kind === 'judge' && model === '') problems[name] = 'Choose the model that judges.';
    else if (kind === 'json_schema')
      try {
        JSON.parse(text);
      } catch {
        problems[name] = 'The schema must be JSON.';
      }
  }
  return problems;
}

function toCheck({ kind, text, model }: DraftCheck): NonNullable<Body['checks']>[number] {
  switch (kind) {
    case 'equals':
      return { equals: text };
    case 'contains':
      return { contains: text };
    case 'matches':
      return { matches: text };
    case 'json_schema':
      return { json_schema: JSON.parse(text) as Record<string, unknown> };
    case 'judge':
      return { judge: { model, criteria: text } };
    default:
      return kind satisfies never;
  }
}

const dayStart = (day: string): string => new Date(`${day}T00:00:00`).toISOString();

/** The filter of the sessions; days begin in the time zone of the reader. */
export const toFilter = (draft: ReplayDraft): NonNullable<Body['filter']> => ({
  ...(draft.filterAgent !== '' && { agent_id: draft.filterAgent }),
  ...(draft.words.trim() !== '' && { q: draft.words.trim() }),
  ...(draft.label.trim() !== '' && { label: [draft.label.trim()] }),
  ...(draft.createdFrom !== '' && { created_from: dayStart(draft.createdFrom) }),
  ...(draft.createdTo !== '' && { created_to: dayStart(draft.createdTo) }),
});

const numberOf = <Name extends string>(name: Name, text: string): { [N in Name]?: number } =>
  (text === '' ? {} : { [name]: Number(text) }) as { [N in Name]?: number };

/** The request of a draft without problems. */
export function toBody(draft: ReplayDraft): Body {
  const turns = { ...numberOf('from', draft.fromTurn), ...numberOf('up_to', draft.upToTurn) };
  const filter = toFilter(draft);
  return {
    ...(draft.source === 'sessions'
      ? { sessions: sessionIdsOf(draft) }
      : Object.keys(filter).length > 0 && { filter }),
    ...(draft.agent !== '' && { agent_id: draft.agent }),
    ...numberOf('agent_revision', draft.revision),
    ...(draft.model !== '' && { model: draft.model }),
    ...(draft.instruction.trim() !== '' && { instruction: draft.instruction }),
    tools: draft.tools,
    missing_tools: draft.missingTools,
    ...(Object.keys(turns).length > 0 && { turns }),
    concurrency: Number(draft.concurrency || 1),
    ...(draft.budget !== '' && { budget: { tokens: Number(draft.budget) } }),
    ...(draft.checks.length > 0 && { checks: draft.checks.map(toCheck) }),
  };
}
