import type { ReactNode } from 'react';
import { cn } from './classNames.ts';

/** Names and values, in columns that fit the width. */
export const Facts = ({
  facts,
  className,
}: {
  facts: readonly (readonly [name: string, value: ReactNode] | false | undefined)[];
  className?: string;
}) => (
  <dl className={cn('grid grid-cols-2 gap-x-6 gap-y-2 md:grid-cols-4', className)}>
    {facts.map(
      (fact) =>
        fact && (
          <div key={fact[0]} className="min-w-0">
            <dt className="text-xs text-muted-foreground">{fact[0]}</dt>
            <dd className="break-words tabular-nums">{fact[1]}</dd>
          </div>
        ),
    )}
  </dl>
);

interface TableProps {
  /** The name of the table, for screen readers and as its heading if `isTitled`. */
  caption: string;
  isTitled?: boolean;
  /** Headings; one that begins with `#` heads numbers, which are aligned to the right. */
  columns: readonly string[];
  /** The cells of each row by a key; the first one names the row. */
  rows: readonly { key: string; cells: readonly ReactNode[] }[];
}

/** A table that scrolls sideways where it does not fit. */
export const DataTable = ({ caption, isTitled = false, columns, rows }: TableProps) => {
  const align = (index: number): string =>
    columns[index]!.startsWith('#') ? 'text-right tabular-nums whitespace-nowrap' : 'text-left';
  const cell = (index: number): string => cn('py-1.5 pr-4 align-top font-normal', align(index));
  return (
    <div className="overflow-x-auto" tabIndex={0} role="region" aria-label={caption}>
      <table className="w-full text-sm">
        <caption className={isTitled ? 'pb-2 text-left font-medium' : 'sr-only'}>{caption}</caption>
        <thead>
          <tr className="border-b text-xs text-muted-foreground">
            {columns.map((column, index) => (
              <th key={column} scope="col" className={cn(cell(index), 'font-medium')}>
                {column.replace(/^#/, '')}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="divide-y">
          {rows.map(({ key, cells: [first, ...cells] }) => (
            <tr key={key}>
              <th scope="row" className={cell(0)}>
                {first}
              </th>
              {cells.map((value, index) => (
                <td key={columns[index + 1]} className={cell(index + 1)}>
                  {value}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
};
