import type { AgentBody } from './agentDraft.ts';

/** A configuration as a revision has it. */
export interface RevisionConfig {
  component: string;
  config: { [Name in keyof AgentBody]?: unknown };
}

/** A field that differs: its values as text, undefined where it is not set. */
export interface FieldChange {
  field: string;
  before: string | undefined;
  after: string | undefined;
  /** Whether its lines are to be compared. */
  isText: boolean;
}

const LABELS: Readonly<Record<Exclude<keyof AgentBody, 'component'>, string>> = {
  name: 'Name',
  model: 'Model',
  tool: 'Tools',
  compaction: 'Compaction',
  temperature: 'Temperature',
  max_output_tokens: 'Most output tokens',
  response_format: 'Response format',
  instruction: 'Instruction',
};
const TEXTS = new Set(['instruction', 'response_format']);

function show(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  return typeof value === 'string' ? value : JSON.stringify(value, undefined, 2);
}

/** The fields in which two configurations differ, in the order of the form. */
export function diffConfigs(before: RevisionConfig, after: RevisionConfig): FieldChange[] {
  const rows = Object.entries(LABELS).map(([name, field]): FieldChange => {
    const key = name as keyof typeof LABELS;
    return {
      field,
      before: show(before.config[key]),
      after: show(after.config[key]),
      isText: TEXTS.has(name),
    };
  });
  const { component } = after;
  rows.push({ field: 'Component', before: before.component, after: component, isText: false });
  return rows.filter((row) => row.before !== row.after);
}
