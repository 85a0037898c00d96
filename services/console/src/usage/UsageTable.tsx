import { Link } from '@tanstack/react-router';
import { formatCount } from '../components/Chart.tsx';
import { CopyButton } from '../components/CopyButton.tsx';
import type { UsageSearch } from './search.ts';
import type { UsageEntry } from './useUsage.ts';

/** An entry with its name, and the search that shows it alone. */
export interface NamedEntry {
  id: string;
  name: string;
  entry: UsageEntry;
  only?: UsageSearch;
}

/** A cost with all its digits. */
export const formatCost = (cost: UsageEntry['cost']): string =>
  cost ? `${cost.amount} ${cost.currency}` : '–';

const COLUMNS: readonly (readonly [string, (entry: UsageEntry) => number | string])[] = [
  ['Runs', ({ runs }) => runs],
  ['Completed', ({ completed }) => completed],
  ['Failed', ({ failed }) => failed],
  ['Interrupted', ({ interrupted }) => interrupted],
  ['Prompt tokens', ({ tokens }) => tokens.prompt],
  ['Answer tokens', ({ tokens }) => tokens.completion],
  ['All tokens', ({ tokens }) => tokens.total],
  ['Model calls', ({ model_calls }) => model_calls],
  ['Tool calls', ({ tool_calls }) => tool_calls],
  ['Cost', ({ cost }) => formatCost(cost)],
  ['Tokens without a price', ({ unpriced_tokens }) => unpriced_tokens],
];

/** A field of RFC 4180. A spreadsheet would take a text that begins so for a formula. */
const quote = (text: string): string =>
  `"${text.replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`;

const toCsv = (group: string, rows: readonly NamedEntry[]): string =>
  [
    ['Id', group, ...COLUMNS.map(([title]) => title)].map(quote),
    ...rows.map(({ id, name, entry }) => [
      ...[id, name].map(quote),
      ...COLUMNS.map(([, valueOf]) => valueOf(entry)),
    ]),
  ].join('\n');

/** Every number of the charts, to read and to copy. */
export function UsageTable({ group, rows }: { group: string; rows: readonly NamedEntry[] }) {
  return (
    <section className="rounded-lg border bg-card">
      <header className="flex items-center justify-between gap-4 border-b px-4 py-2">
        <h2 className="font-medium">Numbers by {group}</h2>
        <CopyButton text={toCsv(group, rows)} label="Copy as CSV" />
      </header>
      <div role="region" aria-label={`Usage by ${group}`} tabIndex={0} className="overflow-x-auto">
        <table className="w-full text-right text-xs tabular-nums [&_td,&_th]:px-3 [&_td,&_th]:py-1.5 [&_td,&_th]:whitespace-nowrap">
          <thead className="border-b text-muted-foreground [&_th]:font-medium">
            <tr>
              <th scope="col" className="text-left first-letter:uppercase">
                {group}
              </th>
              {COLUMNS.map(([title]) => (
                <th key={title} scope="col">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody className="divide-y">
            {rows.map(({ id, name, entry, only }) => (
              <tr key={id} className="hover:bg-muted/60">
                <th scope="row" className="max-w-56 truncate text-left font-normal" title={id}>
                  {only ? (
                    <Link to="/usage" search={only} className="py-1 text-primary hover:underline">
                      {name}
                    </Link>
                  ) : (
                    name
                  )}
                </th>
                {COLUMNS.map(([title, valueOf]) => {
                  const value = valueOf(entry);
                  return (
                    <td key={title}>{typeof value === 'number' ? formatCount(value) : value}</td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
