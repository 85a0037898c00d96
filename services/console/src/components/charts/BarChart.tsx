import { scaleLinear } from '@visx/scale';
import { ChartFrame, formatCount, type ChartProps } from './ChartFrame.tsx';

const ROW_HEIGHT = 26;
const BAR_HEIGHT = 14;
const LABEL_SHARE = 0.34;
const VALUE_WIDTH = 76;
const GAP = 8;

/** A bar per row, of its series one after the other, with the name on the left and the sum behind it. */
export function BarChart({ title, series, rows, format = formatCount }: ChartProps) {
  const sums = rows.map(({ values }) =>
    series.reduce((sum, { key }) => sum + (values[key] ?? 0), 0),
  );
  const most = Math.max(...sums, 0) || 1;
  return (
    <ChartFrame
      title={title}
      series={series}
      rows={rows}
      format={format}
      rowAt={({ y }) => {
        const row = Math.floor(y / ROW_HEIGHT);
        return row >= 0 && row < rows.length ? row : -1;
      }}
    >
      {({ width, active, fillOf }) => {
        const labelWidth = Math.floor(width * LABEL_SHARE);
        const barWidth = Math.max(width - labelWidth - VALUE_WIDTH - 2 * GAP, 0);
        const x = scaleLinear<number>({ domain: [0, most], range: [0, barWidth] });
        return rows.map(({ id, label, values, texts }, at) => {
          let start = 0;
          return (
            <div
              key={id}
              aria-hidden
              className="flex items-center gap-2 rounded-sm text-xs data-active:bg-muted"
              data-active={at === active || undefined}
              style={{ height: ROW_HEIGHT }}
            >
              <span className="shrink-0 truncate" style={{ width: labelWidth }} title={label}>
                {label}
              </span>
              <svg width={barWidth} height={BAR_HEIGHT} className="shrink-0">
                {series.map((each) => {
                  const from = start;
                  start += values[each.key] ?? 0;
                  return (
                    start > from && (
                      <rect
                        key={each.key}
                        x={x(from)}
                        width={x(start) - x(from)}
                        height={BAR_HEIGHT}
                        fill={fillOf(each)}
                        stroke={`var(--chart-${each.look})`}
                        strokeWidth={0.75}
                      />
                    )
                  );
                })}
              </svg>
              <span className="flex-1 truncate text-right text-muted-foreground tabular-nums">
                {(series.length === 1 && texts?.[series[0]!.key]) || format(sums[at]!)}
              </span>
            </div>
          );
        });
      }}
    </ChartFrame>
  );
}
