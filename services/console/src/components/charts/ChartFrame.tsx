import {
  useId,
  useLayoutEffect,
  useRef,
  useState,
  type KeyboardEvent,
  type ReactNode,
} from 'react';

/** What a chart shows of each row, with one of the four looks. */
export interface ChartSeries {
  key: string;
  label: string;
  look: 1 | 2 | 3 | 4;
}

/** A day, an agent, a turn: a value for each series, and where digits matter its text as well. */
export interface ChartRow {
  id: string;
  label: string;
  /** A shorter label, for the axis. */
  tick?: string;
  values: Readonly<Record<string, number>>;
  texts?: Readonly<Record<string, string>>;
}

/** A chart as a picture of `width` pixels; `active` is the row that is pointed at, -1 for none. */
interface PictureProps {
  width: number;
  active: number;
  fillOf: (series: ChartSeries) => string;
}

export interface ChartProps {
  title: string;
  series: readonly ChartSeries[];
  rows: readonly ChartRow[];
  format?: (value: number) => string;
}

interface ChartFrameProps extends Required<ChartProps> {
  /** The row under a point of the picture, -1 for none. */
  rowAt: (point: { x: number; y: number }, width: number) => number;
  children: (picture: PictureProps) => ReactNode;
}

const NUMBERS = new Intl.NumberFormat();
const SHORT = new Intl.NumberFormat(undefined, {
  notation: 'compact',
  maximumSignificantDigits: 3,
});

export const formatCount = (value: number): string => NUMBERS.format(value);
export const formatShort = (value: number): string => SHORT.format(value);

/** Patterns tell the series apart without their colours. */
const PATTERNS: Readonly<Record<ChartSeries['look'], ReactNode>> = {
  1: <rect width="6" height="6" />,
  2: <path d="M-1 1 L1 -1 M0 6 L6 0 M5 7 L7 5" strokeWidth="2.5" />,
  3: <path d="M0 0 L6 6 M6 0 L0 6" strokeWidth="1.6" />,
  4: <circle cx="3" cy="3" r="1.5" />,
};

const Pattern = ({ id, look }: { id: string; look: ChartSeries['look'] }) => (
  <pattern id={id} width="6" height="6" patternUnits="userSpaceOnUse">
    <rect width="6" height="6" fill="var(--card)" />
    <rect width="6" height="6" fill={`var(--chart-${look})`} fillOpacity={0.35} />
    <g fill={`var(--chart-${look})`} stroke={`var(--chart-${look})`} strokeWidth="0">
      {PATTERNS[look]}
    </g>
  </pattern>
);

/** The width of an element, in pixels; 0 before it is laid out. */
function useWidth() {
  const element = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const measure = (): void => setWidth(element.current?.clientWidth ?? 0);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element.current!);
    return () => observer.disconnect();
  }, []);
  return { element, width };
}

const valueOf = (
  { values, texts }: ChartRow,
  { key }: ChartSeries,
  format: (value: number) => string,
): string => texts?.[key] ?? (values[key] === undefined ? '–' : format(values[key]));

/**
 * What all charts have: title, legend, and a line with the values of the row that is pointed at.
 * The arrow keys, Home and End move between the rows. A table beside the chart has all its values.
 */
export function ChartFrame({ title, series, rows, format, rowAt, children }: ChartFrameProps) {
  const titleId = useId();
  const prefix = titleId.replaceAll(/\W/g, '');
  const [active, setActive] = useState(-1);
  const { element, width } = useWidth();
  const row = rows[active];
  const move = (event: KeyboardEvent): void => {
    const last = rows.length - 1;
    const [back, on] = [Math.max(active - 1, 0), Math.min(active + 1, last)];
    const next = {
      ArrowLeft: back,
      ArrowUp: back,
      ArrowRight: on,
      ArrowDown: on,
      Home: 0,
      End: last,
    }[event.key];
    if (event.key === 'Escape') setActive(-1);
    if (next === undefined) return;
    event.preventDefault();
    setActive(next);
  };
  return (
    <figure
      aria-labelledby={titleId}
      className="grid min-w-0 content-start gap-2 rounded-lg border bg-card p-4"
    >
      <figcaption className="flex flex-wrap items-baseline justify-between gap-x-4 gap-y-1">
        <h3 id={titleId} className="font-medium">
          {title}
        </h3>
        <ul className="flex flex-wrap gap-x-3 text-xs text-muted-foreground">
          {series.map(({ key, label, look }) => (
            <li key={key} className="flex items-center gap-1.5">
              <svg width="12" height="12" aria-hidden>
                <rect
                  width="12"
                  height="12"
                  rx="2"
                  fill={`url(#${prefix}-${look})`}
                  stroke={`var(--chart-${look})`}
                />
              </svg>
              {label}
            </li>
          ))}
        </ul>
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
          const { left, top } = currentTarget.getBoundingClientRect();
          setActive(rowAt({ x: clientX - left, y: clientY - top }, width));
        }}
      >
        <svg width="0" height="0" aria-hidden className="absolute">
          <defs>
            {series.map(({ look }) => (
              <Pattern key={look} id={`${prefix}-${look}`} look={look} />
            ))}
          </defs>
        </svg>
        {children({ width, active, fillOf: ({ look }) => `url(#${prefix}-${look})` })}
      </div>
      <p aria-live="polite" className="min-h-8 text-xs text-muted-foreground tabular-nums">
        {row ? (
          <>
            <span className="text-foreground">{row.label}</span>
            {series.map((each) => ` · ${each.label}: ${valueOf(row, each, format)}`)}
          </>
        ) : (
          <span>Values appear here when you point at the chart.</span>
        )}
      </p>
    </figure>
  );
}
