import { scaleLinear, scalePoint } from '@visx/scale';
import { LinePath } from '@visx/shape';
import { Axes, LEFT, PLOT_HEIGHT } from './Axes.tsx';
import { ChartFrame, formatCount, type ChartProps } from './ChartFrame.tsx';

const PADDING = 10;
/** Beyond these, a mark at each value is only noise. */
const MOST_MARKS = 60;
const DASHES = { 1: undefined, 2: '5 3', 3: '2 3', 4: '8 3 2 3' } as const;

/** A line per series over the rows, in their order. Rows without a value are left out of its line. */
export function LineChart({ title, series, rows, format = formatCount }: ChartProps) {
  const x = (width: number) =>
    scalePoint<string>({
      domain: rows.map(({ id }) => id),
      range: [LEFT + PADDING, Math.max(width - PADDING, LEFT + PADDING)],
    });
  const most = Math.max(
    ...rows.flatMap(({ values }) => series.map(({ key }) => values[key] ?? 0)),
    0,
  );
  const y = scaleLinear<number>({ domain: [0, most || 1], range: [PLOT_HEIGHT, 0], nice: 4 });
  return (
    <ChartFrame
      title={title}
      series={series}
      rows={rows}
      format={format}
      rowAt={({ x: at }, width) => {
        const row = Math.round((at - LEFT - PADDING) / (x(width).step() || 1));
        return Math.min(Math.max(row, 0), rows.length - 1);
      }}
    >
      {({ width, active }) => {
        const xScale = x(width);
        const row = rows[active];
        return (
          <Axes width={width} rows={rows} xOf={(id) => xScale(id)!} y={y}>
            {row && (
              <line
                x1={xScale(row.id)}
                x2={xScale(row.id)}
                y2={PLOT_HEIGHT}
                stroke="var(--muted-foreground)"
              />
            )}
            {series.map(({ key, look }) => {
              const points = rows.filter(({ values }) => values[key] !== undefined);
              const colour = `var(--chart-${look})`;
              return (
                <g key={key}>
                  <LinePath
                    data={points}
                    x={({ id }) => xScale(id)!}
                    y={({ values }) => y(values[key]!)}
                    stroke={colour}
                    strokeWidth={1.75}
                    strokeDasharray={DASHES[look]}
                  />
                  {points.length <= MOST_MARKS &&
                    points.map(({ id, values }) => (
                      <circle
                        key={id}
                        cx={xScale(id)}
                        cy={y(values[key]!)}
                        r={2.5}
                        fill={look === 1 ? colour : 'var(--card)'}
                        stroke={colour}
                      />
                    ))}
                </g>
              );
            })}
          </Axes>
        );
      }}
    </ChartFrame>
  );
}
