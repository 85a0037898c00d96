import { scaleBand, scaleLinear } from '@visx/scale';
import { useId, useLayoutEffect, useRef, useState, type KeyboardEvent } from 'react';

type Look = 1 | 2 | 3 | 4;

/** What a chart shows of each row. The look is a colour, and a pattern that tells it from the others without colours. */
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
  format?: (value: number) => string;
}

const NUMBERS = new Intl.NumberFormat();
const SHORT = new Intl.NumberFormat(undefined, {
  notation: 'compact',
  maximumSignificantDigits: 3,
});
export const formatCount = (value: number): string => NUMBERS.format(value);

const HEIGHT = 140;
const BAR = 26;
const TICK_WIDTH = 64;
const NAME_CHARS = 18;
const PATTERNS = {
  1: 'M0 3H6',
  2: 'M-1 1L1 -1M0 6L6 0M5 7L7 5',
  3: 'M0 0L6 6M6 0L0 6',
  4: 'M3 2V4',
} as const;
const LABEL = { fill: 'var(--muted-foreground)', fontSize: 11, fontFamily: 'inherit' } as const;

/** The width of an element, in pixels; 0 before it is laid out. */
function useWidth() {
  const element = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => setWidth(element.current?.clientWidth ?? 0));
    observer.observe(element.current!);
    return () => observer.disconnect();
  }, []);
  return { element, width };
}

/**
 * A chart. The pointer and the arrow keys, Home and End choose a row, whose values are shown below.
 * A table beside the chart has to have all its values.
 */
export function Chart({ title, kind, series, rows, format = formatCount }: ChartProps) {
  const id = useId();
  const { element, width } = useWidth();
  const [active, setActive] = useState(-1);
  const row = rows[active];
  const isFlat = kind === 'bars';
  const left = isFlat ? Math.round(width * 0.36) : 44;
  const height = isFlat ? Math.max(rows.length, 1) * BAR : HEIGHT;
  const band = scaleBand<string>({
    domain: rows.map((each) => each.id),
    range: isFlat ? [0, height] : [left, Math.max(width, left)],
    padding: 0.25,
  });
  const sums = rows.map(({ values }) => series.reduce((sum, [key]) => sum + (values[key] ?? 0), 0));
  const scale = scaleLinear<number>({
    domain: [0, Math.max(...sums) || 1],
    range: isFlat ? [left, Math.max(width - 12, left)] : [height, 0],
    nice: 4,
  });
  const isWhole = sums.every(Number.isInteger);
  const ticks = scale.ticks(isFlat ? 3 : 4).filter((tick) => !isWhole || Number.isInteger(tick));
  const every = Math.ceil((rows.length * TICK_WIDTH) / Math.max(width - left, 1));
  const marks = {
    values: ticks.map((tick) => [SHORT.format(tick), scale(tick)] as const),
    names: rows.map(({ id: of, label, tick = label }) => {
      const name = tick.length > NAME_CHARS ? `${tick.slice(0, NAME_CHARS - 1)}…` : tick;
      return [name, band(of)! + band.bandwidth() / 2] as const;
    }),
  };
  const fillOf = (look: Look): string => `url(#${id.replaceAll(/\W/g, '')}${look})`;
  const move = (event: KeyboardEvent): void => {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    const end = { Home: 0, End: rows.length - 1 }[event.key];
    if (step === undefined && end === undefined) return;
    event.preventDefault();
    setActive(end ?? Math.min(Math.max(active + step!, 0), rows.length - 1));
  };
  const place = (of: string, from: number, to: number) =>
    isFlat
      ? { x: from, width: to - from, y: band(of), height: band.bandwidth() }
      : { y: to, height: from - to, x: band(of), width: band.bandwidth() };
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
                <rect width="12" height="12" fill={fillOf(look)} stroke={`var(--chart-${look})`} />
              </svg>
              {label}
            </span>
          ))}
        </span>
      </figcaption>
      <div
        ref={element}
        role="group"
        tabIndex={0}
        aria-roledescription="chart"
        aria-label={`${title}: ${rows.length} values. Read them with the arrow keys, or in the table.`}
        className="min-w-0 rounded-sm"
        onKeyDown={move}
        onBlur={() => setActive(-1)}
        onPointerLeave={() => setActive(-1)}
        onPointerMove={({ clientX, clientY, currentTarget }) => {
          const box = currentTarget.getBoundingClientRect();
          const at = isFlat ? clientY - box.top : clientX - box.left - left;
          setActive(Math.floor(at / band.step()));
        }}
      >
        <svg width={width} height={height + 22} aria-hidden className="mt-2 block overflow-visible">
          <defs>
            {series.map(([, , look]) => (
              <pattern
                key={look}
                id={fillOf(look).slice(5, -1)}
                width="6"
                height="6"
                patternUnits="userSpaceOnUse"
              >
                <rect width="6" height="6" fill={`var(--chart-${look})`} fillOpacity={0.35} />
                <path
                  d={PATTERNS[look]}
                  stroke={`var(--chart-${look})`}
                  strokeWidth={look === 1 ? 6 : 2}
                />
              </pattern>
            ))}
          </defs>
          {row && (
            <rect {...place(row.id, scale(0), scale(scale.domain()[1]!))} fill="var(--muted)" />
          )}
          {ticks.map((tick) => (
            <path
              key={tick}
              d={isFlat ? `M${scale(tick)} 0V${height}` : `M${left} ${scale(tick)}H${width}`}
              stroke="var(--border)"
            />
          ))}
          {rows.map(({ id: of, values }) => {
            let end = 0;
            return series.map(([key, , look]) => {
              const start = end;
              end += values[key] ?? 0;
              return (
                end > start && (
                  <rect
                    key={key}
                    {...place(of, scale(start), scale(end))}
                    fill={fillOf(look)}
                    stroke={`var(--chart-${look})`}
                    strokeWidth={0.75}
                  />
                )
              );
            });
          })}
          {(isFlat ? marks.names : marks.values).map(([text, at], index) => (
            <text key={index} {...LABEL} textAnchor="end" x={left - 6} y={at + 4}>
              {text}
            </text>
          ))}
          {(isFlat ? marks.values : marks.names).map(([text, at], index) =>
            isFlat || index % every === 0 ? (
              <text key={index} {...LABEL} textAnchor="middle" x={at} y={height + 16}>
                {text}
              </text>
            ) : null,
          )}
        </svg>
      </div>
      <p
        aria-live="polite"
        className="min-h-8 text-xs break-words text-muted-foreground tabular-nums"
      >
        {row
          ? [row.label]
              .concat(
                series.map(([key, label]) => {
                  const value = row.values[key];
                  return `${label}: ${row.texts?.[key] ?? (value === undefined ? '–' : format(value))}`;
                }),
              )
              .join(' · ')
          : 'Values appear here when you point at the chart.'}
      </p>
    </figure>
  );
}
