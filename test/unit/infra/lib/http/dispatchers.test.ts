import { execFileSync } from 'node:child_process';
import { expect, test } from '@jest/globals';

test('requests to models and webhooks load no index of undici', () => {
  const code = `
    await import('./infra/web/httpRequest.ts');
    await import('./infra/openai/chatModels.ts');
    const { createRequire } = await import('node:module');
    const { cache } = createRequire(import.meta.url);
    const ofUndici = Object.keys(cache).filter((path) => path.includes('/node_modules/undici/'));
    console.log(JSON.stringify(ofUndici.map((path) => path.split('/node_modules/undici/').at(-1))));
  `;
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', code]).toString();
  const loaded = JSON.parse(output) as string[];
  expect(loaded).toContain('lib/dispatcher/agent.js');
  expect(loaded).not.toContain('index.js');
});
