import { scaleBand, scaleLinear } from '@visx/scale';
import { useId } from 'react';
import { formatNumber } from '../sessions/session/format.ts';
import { cn } from './classNames.ts';

type Look = 1 | 2 | 3 | 4;

/** A value of each row. The look is a colour and a pattern, which is distinct without colours. */
export type ChartSeries = readonly [key: string, label: string, look: Look];

/** A day, an agent, a turn: a value for each series, and where digits matter its text as well. */
export interface ChartRow {
  id: string;
  label: string;
  /** A shorter label, for the axis. */
  tick?: string;
  values: Readonly<Record<string, number | undefined>>;
  texts?: Readonly<Record<string, string>>;
}

interface ChartProps {
  title: string;
  /** Columns, or bars with room for names; the series are stacked. */
  kind: 'columns' | 'bars';
  series: readonly ChartSeries[];
  rows: readonly ChartRow[];
}

/** The tokens of prompts and of answers. */
export const TOKEN_SERIES: readonly ChartSeries[] = [
  ['prompt', 'Prompt', 1],
  ['completion', 'Answer', 2],
];

const SHORT = new Intl.NumberFormat(undefined, {
  notation: 'compact',
  maximumSignificantDigits: 3,
});

const HEIGHT = 140;
const BAR = 26;
const MOST_TICKS = 5;
const NAME_CHARS = 18;
const PATTERNS = {
  1: 'M0 3H6',
  2: 'M-1 1L1 -1M0 6L6 0M5 7L7 5',
  3: 'M0 0L6 6M6 0L0 6',
  4: 'M3 2V4',
} as const;

const colorOf = (look: Look): string => `var(--color-chart-${look})`;

/** A chart. The values of a row appear at the pointer, and screen readers read all of them. */
export function Chart({ title, kind, series, rows }: ChartProps) {
  const id = useId();
  const isFlat = kind === 'bars';
  const height = isFlat ? Math.max(rows.length, 1) * BAR : HEIGHT;
  // Pixels from the top, and percent of the width.
  const band = scaleBand<string>({
    domain: rows.map((each) => each.id),
    range: [0, isFlat ? height : 100],
    padding: 0.25,
  });
  const sums = rows.map(({ values }) => series.reduce((sum, [key]) => sum + (values[key] ?? 0), 0));
  const scale = scaleLinear<number>({
    domain: [0, Math.max(...sums) || 1],
    range: isFlat ? [0, 100] : [height, 0],
    nice: 4,
  });
  const isWhole = sums.every(Number.isInteger);
  const ticks = scale.ticks(isFlat ? 3 : 4).filter((tick) => !isWhole || Number.isInteger(tick));
  const every = isFlat ? 1 : Math.ceil(rows.length / MOST_TICKS);
  const patternOf = (look: Look): string => `${id.replaceAll(/\W/g, '')}${look}`;
  const paint = (look: Look) => ({ fill: `url(#${patternOf(look)})`, stroke: colorOf(look) });
  const describe = ({ label: name, values, texts }: ChartRow): string => {
    const textOf = (key: string, value = values[key]): string =>
      texts?.[key] ?? (value === undefined ? '–' : formatNumber(value));
    return [name, ...series.map(([key, of]) => `${of}: ${textOf(key)}`)].join(' · ');
  };
  const place = (of: string, from: number, to: number) => {
    const [start, end] = [scale(from), scale(to)];
    return isFlat
      ? { x: `${start}%`, width: `${end - start}%`, y: band(of), height: band.bandwidth() }
      : { y: end, height: start - end, x: `${band(of)}%`, width: `${band.bandwidth()}%` };
  };
  /** A label below the chart, or left of it. */
  const textAt = (key: string | number, text: string, at: number, isBelow: boolean) => (
    <text
      key={key}
      className="fill-muted-foreground text-[11px]"
      textAnchor={isBelow ? 'middle' : 'end'}
      x={isBelow ? `${at}%` : -6}
      y={isBelow ? height + 16 : at + 4}
    >
      {text.length > NAME_CHARS ? `${text.slice(0, NAME_CHARS - 1)}…` : text}
    </text>
  );
  return (
    <figure
      aria-labelledby={id}
      className="grid min-w-0 content-start gap-2 rounded-lg border bg-card p-4"
    >
      <figcaption className="flex flex-wrap items-baseline justify-between gap-x-4 gap-y-1">
        <h3 id={id} className="font-medium">
          {title}
        </h3>
        <span className="flex flex-wrap gap-x-3 text-xs text-muted-foreground">
          {series.map(([key, label, look]) => (
            <span key={key} className="flex items-center gap-1.5">
              <svg width="12" height="12" aria-hidden>
                <rect width="12" height="12" {...paint(look)} />
              </svg>
              {label}
            </span>
          ))}
        </span>
      </figcaption>
      <div className={cn('min-w-0 pr-3', isFlat ? 'pl-[36%]' : 'pl-11')}>
        <svg
          role="img"
          aria-label={rows.map(describe).join('; ')}
          width="100%"
          height={height + 22}
          className="mt-2 block overflow-visible"
        >
          <defs>
            {series.map(([, , look]) => (
              <pattern
                key={look}
                id={patternOf(look)}
                width="6"
                height="6"
                patternUnits="userSpaceOnUse"
              >
                <rect width="6" height="6" fill={colorOf(look)} fillOpacity={0.35} />
                <path d={PATTERNS[look]} stroke={colorOf(look)} strokeWidth={look === 1 ? 6 : 2} />
              </pattern>
            ))}
          </defs>
          {ticks.map((tick) => {
            const at = isFlat ? `${scale(tick)}%` : scale(tick);
            const line = isFlat ? { x1: at, x2: at, y2: height } : { x2: '100%', y1: at, y2: at };
            return <line key={tick} {...line} className="stroke-border" />;
          })}
          {rows.map((row) => {
            let end = 0;
            return (
              <g key={row.id} className="group">
                <title>{describe(row)}</title>
                <rect
                  {...place(row.id, 0, scale.domain()[1]!)}
                  className="fill-transparent group-hover:fill-muted"
                />
                {series.map(([key, , look]) => {
                  const start = end;
                  end += row.values[key] ?? 0;
                  if (end === start) return null;
                  return <rect key={key} {...place(row.id, start, end)} {...paint(look)} />;
                })}
              </g>
            );
          })}
          {ticks.map((tick) => textAt(tick, SHORT.format(tick), scale(tick), isFlat))}
          {rows
            .filter((_, index) => index % every === 0)
            .map(({ id: of, label: name, tick = name }) =>
              textAt(of, tick, band(of)! + band.bandwidth() / 2, !isFlat),
            )}
        </svg>
      </div>
    </figure>
  );
}
