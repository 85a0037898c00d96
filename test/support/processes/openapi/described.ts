import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../../docs/projectFiles.ts';
import { TEST_KEY } from '../../http/service.ts';
import { startServerProcess } from '../serverProcess.ts';
import { orSkip } from '../recipes/installed.ts';
import { temporaryFolder } from '../../stores/sqlite/sqliteEventStore.ts';
import { openApiTools, runTool, type Ran } from './tools.ts';

/** A service in a process of its own, its document in a file, and the tools to look at both. */
export interface Described {
  url: string;
  key: string;
  /** Has `openapi.json` and the programs; what tools write goes here. */
  folder: string;
  document: Record<string, any>;
  /** A program and its arguments, parted by spaces. */
  run(command: string): Promise<Ran>;
  close(): Promise<void>;
}

/** Undefined where the tools can't be had. */
export async function describedService(): Promise<Described | undefined> {
  const tools = await orSkip(
    openApiTools,
    'What looks at the document needs Python 3 with venv, and a way to PyPI and npm.',
  );
  if (!tools) return undefined;
  const data = await temporaryFolder();
  const server = startServerProcess({
    DATA_DIR: data,
    BOOTSTRAP_API_KEY: TEST_KEY,
    LOG_LEVEL: 'warn',
  });
  const url = await server.ready;
  // Below the tools, so that programs find the packages that they import.
  const folder = await mkdtemp(join(tools.node, 'work-'));
  await cp(join(root, 'test/openapi/programs'), folder, { recursive: true });
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as Described['document'];
  await writeFile(join(folder, 'openapi.json'), JSON.stringify(document));
  return {
    url,
    key: TEST_KEY,
    folder,
    document,
    run: (command) => runTool(tools, folder, command),
    async close() {
      server.kill('SIGTERM');
      await server.exited;
      await Promise.all([folder, data].map((path) => rm(path, { recursive: true, force: true })));
    },
  };
}
