import type { AgentFields } from './agentDraft.ts';

/** A configuration as a revision has it. */
export interface RevisionConfig {
  component: string;
  config: Partial<AgentFields>;
}

/** A field that differs: its values as text, undefined where it is not set. */
export interface FieldChange {
  field: string;
  before: string | undefined;
  after: string | undefined;
  /** Whether its lines are to be compared. */
  isText: boolean;
}

export const FIELD_LABELS = {
  name: 'Name',
  model: 'Model',
  tool: 'Tools',
  temperature: 'Temperature',
  max_output_tokens: 'Most output tokens',
  response_format: 'Response format',
  component: 'Component',
  compaction: 'Compaction',
  instruction: 'Instruction',
} as const satisfies Record<keyof AgentFields, string>;

const show = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : JSON.stringify(value, undefined, 2);

/** The fields in which two configurations differ, in the order of the form. */
export function diffConfigs(before: RevisionConfig, after: RevisionConfig): FieldChange[] {
  const [old, next] = [before, after].map(({ config, component }): Partial<AgentFields> => ({
    ...config,
    component,
  }));
  return Object.entries(FIELD_LABELS)
    .map(([name, field]) => ({
      field,
      before: show(old![name as keyof AgentFields]),
      after: show(next![name as keyof AgentFields]),
      isText: name === 'instruction' || name === 'response_format',
    }))
    .filter((row) => row.before !== row.after);
}
