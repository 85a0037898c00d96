import { Link } from '@tanstack/react-router';
import { cn } from '../components/classNames.ts';
import { CopyButton } from '../components/CopyButton.tsx';
import { formatCount } from '../components/charts/ChartFrame.tsx';
import type { UsageSearch } from './search.ts';
import type { UsageEntry } from './useUsage.ts';

/** An entry with its name, and the filters that lead to it alone. */
export interface NamedEntry {
  id: string;
  name: string;
  entry: UsageEntry;
  only?: UsageSearch;
}

type Column = readonly [title: string, textOf: (entry: UsageEntry) => string];

/** A cost with all its digits. */
export const formatCost = (cost: UsageEntry['cost']): string =>
  cost ? `${cost.amount} ${cost.currency}` : '–';

const COLUMNS: readonly Column[] = [
  ['Runs', ({ runs }) => formatCount(runs)],
  ['Completed', ({ completed }) => formatCount(completed)],
  ['Failed', ({ failed }) => formatCount(failed)],
  ['Interrupted', ({ interrupted }) => formatCount(interrupted)],
  ['Prompt tokens', ({ tokens }) => formatCount(tokens.prompt)],
  ['Answer tokens', ({ tokens }) => formatCount(tokens.completion)],
  ['All tokens', ({ tokens }) => formatCount(tokens.total)],
  ['Model calls', (entry) => formatCount(entry.model_calls)],
  ['Tool calls', (entry) => formatCount(entry.tool_calls)],
  ['Cost', ({ cost }) => formatCost(cost)],
  ['Tokens without a price', (entry) => formatCount(entry.unpriced_tokens)],
];

const CSV: readonly Column[] = [
  ['runs', ({ runs }) => String(runs)],
  ['completed', ({ completed }) => String(completed)],
  ['failed', ({ failed }) => String(failed)],
  ['interrupted', ({ interrupted }) => String(interrupted)],
  ['prompt_tokens', ({ tokens }) => String(tokens.prompt)],
  ['completion_tokens', ({ tokens }) => String(tokens.completion)],
  ['total_tokens', ({ tokens }) => String(tokens.total)],
  ['model_calls', (entry) => String(entry.model_calls)],
  ['tool_calls', (entry) => String(entry.tool_calls)],
  ['cost', ({ cost }) => cost?.amount ?? ''],
  ['currency', ({ cost }) => cost?.currency ?? ''],
  ['unpriced_tokens', (entry) => String(entry.unpriced_tokens)],
];

/** A field of RFC 4180. A spreadsheet would take a text that begins so for a formula. */
const quote = (text: string): string =>
  `"${text.replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`;

/** The entries as CSV, with exact numbers. */
export const toCsv = (group: string, rows: readonly NamedEntry[]): string =>
  [
    [group, `${group}_name`, ...CSV.map(([title]) => title)].join(','),
    ...rows.map(({ id, name, entry }) =>
      [quote(id), quote(name), ...CSV.map(([, textOf]) => textOf(entry))].join(','),
    ),
  ].join('\n');

interface UsageTableProps {
  group: string;
  rows: readonly NamedEntry[];
}

/** Every number of the charts, to read and to copy. */
export function UsageTable({ group, rows }: UsageTableProps) {
  const cell = 'px-3 py-1.5 text-right tabular-nums whitespace-nowrap';
  return (
    <section className="rounded-lg border bg-card">
      <header className="flex items-center justify-between gap-4 border-b px-4 py-2">
        <h2 className="font-medium">Numbers by {group}</h2>
        <CopyButton text={toCsv(group, rows)} label="Copy as CSV" />
      </header>
      <div role="region" aria-label={`Usage by ${group}`} tabIndex={0} className="overflow-x-auto">
        <table className="w-full text-xs">
          <thead>
            <tr className="border-b text-muted-foreground">
              <th scope="col" className="px-3 py-2 text-left font-medium first-letter:uppercase">
                {group}
              </th>
              {COLUMNS.map(([title]) => (
                <th key={title} scope="col" className={cn(cell, 'font-medium')}>
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody className="divide-y">
            {rows.map(({ id, name, entry, only }) => (
              <tr key={id} className="hover:bg-muted/60">
                <th
                  scope="row"
                  className="max-w-56 truncate px-3 py-1.5 text-left font-normal"
                  title={id}
                >
                  {only ? (
                    <Link
                      to="/usage"
                      search={only}
                      className="inline-block max-w-full truncate py-1 align-middle text-primary hover:underline"
                    >
                      {name}
                    </Link>
                  ) : (
                    name
                  )}
                </th>
                {COLUMNS.map(([title, textOf]) => (
                  <td key={title} className={cell}>
                    {textOf(entry)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
