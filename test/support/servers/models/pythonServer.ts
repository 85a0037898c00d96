import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describe, test } from '@jest/globals';
import { freePort } from '../../processes/freePort.ts';

const venv = process.env['MODEL_SERVERS_VENV'] ?? '';

/** A model server of PyPI that runs for a test. */
export interface PythonServer {
  /** With the `/v1` that clients expect. */
  baseUrl: string;
  stop(): Promise<void>;
}

/** Runs a Python program of the environment to its end. */
export async function runPython(...args: readonly string[]): Promise<void> {
  await promisify(execFile)(join(venv, 'bin/python'), args);
}

/** Starts a server with the arguments that a port needs. Resolves once it lists its models. */
export async function startPythonServer(
  argsOf: (port: number) => readonly string[],
  env: Record<string, string> = {},
): Promise<PythonServer> {
  const port = await freePort();
  const child = spawn(join(venv, 'bin/python'), argsOf(port), {
    env: { ...process.env, ...env },
    stdio: 'ignore',
  });
  const exited = once(child, 'exit');
  const baseUrl = `http://127.0.0.1:${port}/v1`;
  const isReady = () =>
    fetch(`${baseUrl}/models`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isReady())) {
    if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}`);
    await sleep(200);
  }
  return {
    baseUrl,
    async stop() {
      child.kill();
      await exited;
    },
  };
}

/** Describes a suite that needs a package of MODEL_SERVERS_VENV, or says how to install it. */
export function describeWithPackage(module: string, requirement: string, suite: () => void): void {
  const isInstalled =
    existsSync(join(venv, 'bin/python')) &&
    globSync(join(venv, 'lib/python3*/site-packages', module)).length > 0;
  if (isInstalled) describe(requirement, suite);
  else
    describe(requirement, () =>
      test.skip(`needs MODEL_SERVERS_VENV, a Python environment: python3 -m venv $MODEL_SERVERS_VENV && $MODEL_SERVERS_VENV/bin/pip install ${requirement}`, () =>
        undefined),
    );
}
