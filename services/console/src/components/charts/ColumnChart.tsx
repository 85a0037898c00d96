import { scaleBand, scaleLinear } from '@visx/scale';
import { BarStack } from '@visx/shape';
import { Axes, LEFT, PLOT_HEIGHT } from './Axes.tsx';
import {
  ChartFrame,
  formatCount,
  type ChartProps,
  type ChartRow,
  type ChartSeries,
} from './ChartFrame.tsx';

const totalOf = ({ values }: ChartRow, series: readonly ChartSeries[]): number =>
  series.reduce((sum, { key }) => sum + (values[key] ?? 0), 0);

/** A column per row, in which the series are stacked. */
export function ColumnChart({ title, series, rows, format = formatCount }: ChartProps) {
  const ids = rows.map(({ id }) => id);
  const x = (width: number) =>
    scaleBand<string>({ domain: ids, range: [LEFT, Math.max(width, LEFT)], padding: 0.2 });
  const most = Math.max(...rows.map((row) => totalOf(row, series)), 0);
  const y = scaleLinear<number>({ domain: [0, most || 1], range: [PLOT_HEIGHT, 0], nice: 4 });
  return (
    <ChartFrame
      title={title}
      series={series}
      rows={rows}
      format={format}
      rowAt={({ x: at }, width) => {
        const row = Math.floor((at - LEFT) / x(width).step());
        return row >= 0 && row < rows.length ? row : -1;
      }}
    >
      {({ width, active, fillOf }) => {
        const xScale = x(width);
        const row = rows[active];
        return (
          <Axes width={width} rows={rows} xOf={(id) => xScale(id)! + xScale.bandwidth() / 2} y={y}>
            {row && (
              <rect
                x={xScale(row.id)! - (xScale.step() - xScale.bandwidth()) / 2}
                width={xScale.step()}
                height={PLOT_HEIGHT}
                fill="var(--muted)"
              />
            )}
            <BarStack
              data={[...rows]}
              keys={series.map(({ key }) => key)}
              x={({ id }) => id}
              value={({ values }, key) => values[key] ?? 0}
              xScale={xScale}
              yScale={y}
              color={() => ''}
            >
              {(stacks) =>
                stacks.flatMap(({ bars, index }) =>
                  bars
                    .filter(({ height }) => height > 0)
                    .map((bar) => (
                      <rect
                        key={`${bar.key}-${bar.index}`}
                        x={bar.x}
                        y={bar.y}
                        width={bar.width}
                        height={bar.height}
                        fill={fillOf(series[index]!)}
                        stroke={`var(--chart-${series[index]!.look})`}
                        strokeWidth={0.75}
                      />
                    )),
                )
              }
            </BarStack>
          </Axes>
        );
      }}
    </ChartFrame>
  );
}
