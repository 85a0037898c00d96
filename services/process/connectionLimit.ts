import { readFileSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { MIB } from '../../shared/lib/units.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { Logger } from '../../shared/lib/logger.ts';

/**
 * Files and connections of the process itself: databases, providers, webhooks, tool servers. A
 * quarter of the limit is kept for them, within these bounds.
 */
const OWN_FILES = { least: 100, most: 2_048 };

/** The connections of a process whose operator sets no limit. */
const DEFAULT_CONNECTIONS = 10_000;

/** The soft limit of open files, which Node has raised to the hard limit; undefined if it is unknown. */
function openFilesLimit(): number | undefined {
  try {
    const [, limit] =
      /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return limit === undefined ? undefined : Number(limit);
  } catch {
    return undefined;
  }
}

/** The limits on the connections of a process; unknown open files are undefined. */
const processLimits = () => ({
  openFiles: openFilesLimit(),
  heapBytes: getHeapStatistics().heap_size_limit,
});

/** The connections that the limit of open files leaves to clients. */
function connectionsWithinOpenFiles(openFiles: number): number {
  const { least, most } = OWN_FILES;
  return openFiles - Math.min(most, Math.max(least, Math.ceil(openFiles / 4)));
}

/**
 * The connections that clients may hold: those that the operator wants, or fewer, with a warning, where
 * the limit of open files would not leave enough for the process itself, or the heap is too small for
 * the headers that all of them could send. The default depends on the heap without a warning. Throws
 * `configuration_invalid` where no file is left for clients.
 */
export function connectionLimit(
  configured: number | undefined,
  logger: Pick<Logger, 'warn'>,
  { openFiles = Infinity, heapBytes }: ReturnType<typeof processLimits> = processLimits(),
): number {
  const withinFiles = connectionsWithinOpenFiles(openFiles);
  if (withinFiles < 1)
    throw new TurnlogError(
      'configuration_invalid',
      `The limit of open files is ${openFiles}, and the service needs more than ${OWN_FILES.least}. Raise it (\`ulimit -n\`, or LimitNOFILE of systemd).`,
    );
  const withinHeap = Math.floor(heapBytes / LIMITS.http.connectionBytes);
  const requested = configured ?? Math.min(DEFAULT_CONNECTIONS, withinHeap);
  const available = Math.min(withinFiles, withinHeap);
  if (requested <= available) return requested;
  const reason =
    withinFiles < withinHeap
      ? `the limit of open files is ${openFiles}`
      : `the heap has ${Math.floor(heapBytes / MIB)} MiB`;
  logger.warn(
    {
      ...(Number.isFinite(openFiles) && { open_files: openFiles }),
      heap_bytes: heapBytes,
      max_connections: available,
    },
    `MAX_CONNECTIONS is lowered from ${requested} to ${available}, because ${reason}`,
  );
  return available;
}
