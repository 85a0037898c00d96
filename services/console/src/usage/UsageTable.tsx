import { Link } from '@tanstack/react-router';
import type { Schema } from '../api/client.ts';
import { formatNumber } from '../sessions/session/format.ts';
import { Card, DataTable } from '../components/view.tsx';
import type { UsageSearch } from './search.ts';

export type UsageEntry = Schema<'UsageEntry'>;

/** An entry with its name, and the search that shows it alone. */
export interface NamedEntry {
  id: string;
  name: string;
  entry: UsageEntry;
  only?: UsageSearch;
}

/** A cost with all its digits. */
export const showCost = (cost: UsageEntry['cost'] | undefined): string =>
  cost ? `${cost.amount} ${cost.currency}` : '–';

/** The figures of an entry: the name of each, and its value. */
const FIGURES: readonly (readonly [string, (entry: UsageEntry) => number | string])[] = [
  ['Runs', ({ runs }) => runs],
  ['Completed', ({ completed }) => completed],
  ['Failed', ({ failed }) => failed],
  ['Interrupted', ({ interrupted }) => interrupted],
  ['Prompt tokens', ({ tokens }) => tokens.prompt],
  ['Answer tokens', ({ tokens }) => tokens.completion],
  ['All tokens', ({ tokens }) => tokens.total],
  ['Model calls', ({ model_calls }) => model_calls],
  ['Tool calls', ({ tool_calls }) => tool_calls],
  ['Cost', ({ cost }) => showCost(cost)],
  ['Tokens without a price', ({ unpriced_tokens }) => unpriced_tokens],
];

/** The names of the figures with their texts. */
export const figuresOf = (entry: UsageEntry) =>
  FIGURES.map(([name, valueOf]) => {
    const value = valueOf(entry);
    return [name, typeof value === 'number' ? formatNumber(value) : value] as const;
  });

/** Every number of the charts, to read and to copy. */
export function UsageTable({ group, rows }: { group: string; rows: readonly NamedEntry[] }) {
  return (
    <Card>
      <DataTable
        caption={`Usage by ${group.toLowerCase()}`}
        isTitled
        columns={[group, ...FIGURES.map(([name]) => `#${name}`)]}
        rows={rows.map(({ id, name, entry, only }) => ({
          key: id,
          cells: [
            <span title={id} className="block max-w-56 truncate">
              {only ? (
                <Link to="/usage" search={only} className="text-primary hover:underline">
                  {name}
                </Link>
              ) : (
                name
              )}
            </span>,
            ...figuresOf(entry).map(([, text]) => text),
          ],
        }))}
      />
    </Card>
  );
}
