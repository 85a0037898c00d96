import { open, rm } from 'node:fs/promises';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { sessionReport, type ReportRequest } from '../../../shared/reports/readReport.ts';
import type { CliContext } from '../context.ts';

/**
 * Writes the report of a session to a new file, or over an existing one with `replace`. A failure
 * removes the file.
 */
export async function writeReportFile(
  { operator, signal }: CliContext,
  request: ReportRequest,
  { file, replace = false }: { file: string; replace?: boolean | undefined },
): Promise<void> {
  const toFileError = (error: unknown): TurnlogError =>
    new TurnlogError('configuration_invalid', `${file}: ${(error as Error).message}`);
  const target = await open(file, replace ? 'w' : 'wx', 0o600).catch((error: unknown) => {
    throw toFileError(error);
  });
  try {
    await using handle = target;
    const stores = { ...operator, tiles: await operator.tiles() };
    for await (const piece of sessionReport(stores, request, signal)) await handle.writeFile(piece);
    await handle.sync();
  } catch (error) {
    await rm(file, { force: true });
    throw error;
  }
}
