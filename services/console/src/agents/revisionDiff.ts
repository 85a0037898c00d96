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
  /** Whether the lines are to be compared, rather than the values. */
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

/** A run of lines that two texts share, or that only one of them has. */
export interface DiffLine {
  kind: 'same' | 'removed' | 'added';
  text: string;
}

/** The most cells of the table; larger middles are shown as replaced. */
const MOST_CELLS = 1_000_000;

/** The shortest edit between two lists of lines, by their longest common subsequence. */
function diffMiddle(before: readonly string[], after: readonly string[]): DiffLine[] {
  const removed = before.map((text): DiffLine => ({ kind: 'removed', text }));
  const added = after.map((text): DiffLine => ({ kind: 'added', text }));
  if (before.length * after.length > MOST_CELLS) return [...removed, ...added];
  const width = after.length + 1;
  const lengths = new Uint32Array((before.length + 1) * width);
  for (let i = before.length - 1; i >= 0; i -= 1)
    for (let j = after.length - 1; j >= 0; j -= 1)
      lengths[i * width + j] =
        before[i] === after[j]
          ? lengths[(i + 1) * width + j + 1]! + 1
          : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!);
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < before.length && j < after.length) {
    if (before[i] === after[j]) {
      lines.push({ kind: 'same', text: before[i]! });
      i += 1;
      j += 1;
    } else if (lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!) {
      lines.push(removed[i]!);
      i += 1;
    } else {
      lines.push(added[j]!);
      j += 1;
    }
  }
  return [...lines, ...removed.slice(i), ...added.slice(j)];
}

const linesOf = (text: string): string[] => (text === '' ? [] : text.split(/\r\n|\n/));

/** The lines of two texts: shared, removed and added, in order. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [old, next] = [linesOf(before), linesOf(after)];
  const shortest = Math.min(old.length, next.length);
  let start = 0;
  while (start < shortest && old[start] === next[start]) start += 1;
  let end = 0;
  while (end < shortest - start && old.at(-1 - end) === next.at(-1 - end)) end += 1;
  const same = (text: string): DiffLine => ({ kind: 'same', text });
  return [
    ...old.slice(0, start).map(same),
    ...diffMiddle(old.slice(start, old.length - end), next.slice(start, next.length - end)),
    ...old.slice(old.length - end).map(same),
  ];
}
