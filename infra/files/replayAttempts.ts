import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { storeUnavailableError } from '../../shared/lib/errors/turnlogError.ts';
import type { AttemptedTurn, ReplayAttempts } from '../../shared/replays/replayAttempts.ts';
import { isAbsent } from './atomicWrite.ts';

/** Converts every error to `store_unavailable`. */
const onDisk = <Result>(work: () => Promise<Result>): Promise<Result> =>
  work().catch((error: unknown) => {
    throw storeUnavailableError(
      `The folder of the attempts of replays can't be read or written: ${(error as Error).message}.`,
      error,
    );
  });

/** No id has a dot. */
const prefixOf = ({ replay_id, session_id, turn }: AttemptedTurn): string =>
  `${replay_id}.${session_id}.${turn}.`;

/**
 * Keeps attempts as empty files in a folder. They are not flushed to the disk: they have to survive the
 * process, not the machine.
 */
export function openFileReplayAttempts(folder: string): ReplayAttempts {
  const processId = randomUUID();
  const fileOf = (turn: AttemptedTurn): string => join(folder, prefixOf(turn) + processId);
  const list = (): Promise<string[]> =>
    readdir(folder).catch((error: unknown) => {
      if (isAbsent(error)) return [];
      throw error;
    });

  return {
    countDeaths: (turn) =>
      onDisk(async () => {
        const files = await list();
        return files.filter((file) => file.startsWith(prefixOf(turn)) && !file.endsWith(processId))
          .length;
      }),
    begin: (turn) =>
      onDisk(async () => {
        await mkdir(folder, { recursive: true, mode: 0o700 });
        await writeFile(fileOf(turn), '', { mode: 0o600 });
      }),
    end: (turn) => onDisk(() => rm(fileOf(turn), { force: true })),
    keepOnly: (replayIds) =>
      onDisk(async () => {
        const keptIds = new Set(replayIds);
        for (const file of await list())
          if (!keptIds.has(file.split('.')[0]!)) await rm(join(folder, file), { force: true });
      }),
  };
}
