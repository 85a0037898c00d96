import { readFileSync } from 'node:fs';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { Logger } from '../../shared/lib/logger.ts';

/**
 * Files and connections of the process itself: databases, providers, webhooks, tool servers. A
 * quarter of the limit is kept for them, within these bounds.
 */
const OWN_FILES = { least: 100, most: 1_024 };

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

/**
 * The connections that clients may hold: `wanted`, or fewer, with a warning, where the limit of open
 * files would not leave enough for the process itself. Throws `configuration_invalid` where it
 * leaves none for clients.
 */
export function connectionsWithinOpenFiles(
  wanted: number,
  logger: Pick<Logger, 'warn'>,
  openFiles: number | undefined = openFilesLimit(),
): number {
  if (openFiles === undefined) return wanted;
  const { least, most } = OWN_FILES;
  const available = openFiles - Math.min(most, Math.max(least, Math.ceil(openFiles / 4)));
  if (wanted <= available) return wanted;
  if (available < 1)
    throw new TurnlogError(
      'configuration_invalid',
      `The limit of open files is ${openFiles}, and the service needs more than ${least}. Raise it (\`ulimit -n\`, or LimitNOFILE of systemd).`,
    );
  logger.warn(
    { open_files: openFiles, max_connections: available },
    `MAX_CONNECTIONS is lowered from ${wanted} to ${available}, because the limit of open files is ${openFiles}`,
  );
  return available;
}
