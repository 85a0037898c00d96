import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

const run = promisify(execFile);
const docker = async (...args: string[]): Promise<string> =>
  (await run('docker', args)).stdout.trim();
const image = process.env['TURNLOG_IMAGE'];
const START_TIMEOUT_MS = 30_000;
/** Those of the image's entry point. Compiled code is only reused under the same flags. */
const FLAGS = ['--expose-gc', '--max-semi-space-size=8'];
const key = 'chosen-for-a-container_7Qx2mVw9RkZp4LbN';
const headers = { 'x-api-key': key, 'content-type': 'application/json' };

/**
 * The address of the container on this machine, once it is ready; a container that starts again may
 * have another one.
 */
async function ready(container: string): Promise<string> {
  const url = `http://${await docker('port', container, '3000/tcp')}`;
  for (const until = Date.now() + START_TIMEOUT_MS; Date.now() < until; await sleep(50)) {
    const answer = await fetch(`${url}/health/ready`).catch(() => undefined);
    if (answer?.status === 200) return url;
  }
  throw new Error(`not ready in time: ${await docker('logs', container)}`);
}

(image ? describe : describe.skip)('the image that TURNLOG_IMAGE names', () => {
  const name = `turnlog-test-${randomUUID()}`;
  let url = '';
  const post = async (path: string, body: object): Promise<any> =>
    (await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })).json();

  beforeAll(async () => {
    const restricted = [
      '--read-only',
      '--tmpfs',
      '/tmp',
      '--cap-drop',
      'ALL',
      '--security-opt',
      'no-new-privileges',
    ];
    await docker(
      'run',
      '--detach',
      '--name',
      name,
      ...restricted,
      '--publish',
      '127.0.0.1::3000',
      '--env',
      `BOOTSTRAP_API_KEY=${key}`,
      image!,
    );
    url = await ready(name);
  }, START_TIMEOUT_MS * 2);
  afterAll(async () => void (await docker('rm', '--force', '--volumes', name)));

  test('runs an agent without being root or able to write to its own files', async () => {
    const { data: agent } = await post('/v1/agents', {
      name: 'Sums',
      instruction: 'Answer briefly.',
      model: 'offline-echo',
      tool: 'calculator',
    });
    const { data: answer } = await post(`/v1/agents/${agent.agent_id}/run`, {
      input: 'What is 12*34?',
    });
    expect(answer.output).toContain('408');
    const status = await docker('exec', name, 'cat', '/proc/1/status');
    expect(status).toMatch(/^Uid:\s+10001\s/m);
    expect(status).toMatch(/^CapEff:\s+0+$/m);
    await expect(docker('exec', name, 'touch', 'compile-cache/x')).rejects.toThrow(
      /Read-only file system/,
    );
  });

  test('brings compiled code for the user that it runs as', async () => {
    const script =
      "const { enableCompileCache, getCompileCacheDir } = require('node:module'); enableCompileCache(); console.log(require('node:fs').readdirSync(getCompileCacheDir()).length)";
    const files = await docker('exec', name, 'node', ...FLAGS, '--eval', script);
    expect(Number(files)).toBeGreaterThan(100);
  });

  test('serves the console, which was built with the image', async () => {
    const page = await (await fetch(`${url}/console`)).text();
    const [script] = /\/console\/assets\/[^"]+\.js/.exec(page)!;
    expect((await fetch(url + script)).status).toBe(200);
    expect(await docker('logs', name)).not.toContain('console');
  });

  test('has a health check that passes while it serves and fails where nothing does', async () => {
    const check = ['node', 'infra/deploy/healthCheck.ts'];
    await expect(docker('exec', name, ...check)).resolves.toBe('');
    await expect(docker('exec', '--env', 'PORT=3001', name, ...check)).rejects.toMatchObject({
      code: 1,
    });
  });

  test('has what it answered after it was killed and started again', async () => {
    const { data: agent } = await post('/v1/agents', {
      name: 'Kept',
      instruction: 'Stay.',
      model: 'offline-echo',
    });
    await docker('kill', name);
    await docker('start', name);
    url = await ready(name);
    const listed = (await (await fetch(`${url}/v1/agents`, { headers })).json()) as {
      data: Array<{ agent_id: string }>;
    };
    expect(listed.data.map(({ agent_id }) => agent_id)).toContain(agent.agent_id);
  });

  test('ends with exit code 0 when it is stopped', async () => {
    await docker('stop', '--time', '15', name);
    expect(await docker('inspect', '--format', '{{.State.ExitCode}}', name)).toBe('0');
  });
});
