import { AxisBottom, AxisLeft } from '@visx/axis';
import { scalePoint, type scaleLinear } from '@visx/scale';
import type { ReactNode } from 'react';
import { formatShort, type ChartRow } from './ChartFrame.tsx';

/** The room of the labels, and of the plot, in pixels. */
export const LEFT = 44;
export const PLOT_HEIGHT = 140;
const TOP = 8;
const BOTTOM = 22;
const TICKS = 4;
const LABEL_WIDTH = 64;

const LABEL = { fill: 'var(--muted-foreground)', fontSize: 11, fontFamily: 'inherit' } as const;

interface AxesProps {
  width: number;
  rows: readonly ChartRow[];
  /** The middle of a row. */
  xOf: (id: string) => number;
  y: ReturnType<typeof scaleLinear<number>>;
  children: ReactNode;
}

/** A picture with a scale on the left, and as many labels of the rows as there is room for. */
export function Axes({ width, rows, xOf, y, children }: AxesProps) {
  const every = Math.max(1, Math.ceil((rows.length * LABEL_WIDTH) / Math.max(width - LEFT, 1)));
  const labelled = rows.filter((_row, at) => at % every === 0);
  const middleOf = (row: ChartRow | undefined): number => (row ? xOf(row.id) : 0);
  const places = scalePoint<string>({
    domain: labelled.map(({ id }) => id),
    range: [middleOf(labelled[0]), middleOf(labelled.at(-1))],
  });
  const labels = new Map(rows.map(({ id, label, tick = label }) => [id, tick]));
  return (
    <svg
      width={width}
      height={TOP + PLOT_HEIGHT + BOTTOM}
      aria-hidden
      className="block overflow-visible"
    >
      <g transform={`translate(0 ${TOP})`}>
        {y.ticks(TICKS).map((tick) => (
          <line key={tick} x1={LEFT} x2={width} y1={y(tick)} y2={y(tick)} stroke="var(--border)" />
        ))}
        {children}
        <AxisLeft
          scale={y}
          left={LEFT}
          numTicks={TICKS}
          hideAxisLine
          hideTicks
          tickFormat={(value) => formatShort(value as number)}
          tickLabelProps={{ ...LABEL, textAnchor: 'end', dx: -4, dy: 4 }}
        />
        <AxisBottom
          scale={places}
          top={PLOT_HEIGHT}
          stroke="var(--border)"
          hideAxisLine
          hideTicks
          tickFormat={(id) => labels.get(id)!}
          tickLabelProps={{ ...LABEL, textAnchor: 'middle' }}
        />
      </g>
    </svg>
  );
}
