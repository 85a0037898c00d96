import { cn } from './classNames.ts';

const NEARLY = 0.8;
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** A number of bytes in the unit that fits it. */
export function formatBytes(bytes: number | undefined): string {
  if (bytes === undefined) return '…';
  const unit = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), UNITS.length - 1);
  return `${(bytes / 1_024 ** unit).toFixed(unit === 0 ? 0 : 1)} ${UNITS[unit]}`;
}

interface LimitUseProps {
  used: number;
  limit: number | null;
  isBytes: boolean;
  label: string;
}

/** How much of a limit is used, as a bar below the figures. */
export function LimitUse({ used, limit, isBytes, label }: LimitUseProps) {
  const format = isBytes ? formatBytes : (value: number) => value.toLocaleString();
  if (limit === null) return `${format(used)}, no limit`;
  // A quota may be 0.
  const share = limit > 0 ? used / limit : 1;
  return (
    <div className="ml-auto grid w-40 gap-1">
      {format(used)} of {format(limit)}
      <div
        role="meter"
        aria-label={label}
        title={`${Math.round(share * 100)} %`}
        aria-valuemax={limit}
        aria-valuenow={Math.min(used, limit)}
        className="h-1 overflow-hidden rounded-full bg-muted"
      >
        <div
          className={cn('h-full', share >= NEARLY ? 'bg-warning' : 'bg-primary')}
          style={{ width: `${Math.min(share, 1) * 100}%` }}
        />
      </div>
    </div>
  );
}
