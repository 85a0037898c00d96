import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { routes } from '../../services/api/routes/index.ts';
import { ConfigSchema } from '../../shared/config.ts';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

test('the README lists every option with its default and what it does', () => {
  const rows = Object.entries(ConfigSchema.properties).map(([name, schema]) => {
    const { default: preset, description } = schema as unknown as {
      default?: string | number;
      description: string;
    };
    return `| \`${name}\` | ${preset === undefined ? '–' : `\`${preset}\``} | ${description} |`;
  });
  expect(rows.filter((row) => !readme.includes(row))).toEqual([]);
});

test('the README names every operation', () => {
  expect(
    routes
      .map(({ method, path }) => `${method.toUpperCase()} ${path}`)
      .filter((operation) => !readme.includes(operation)),
  ).toEqual([]);
});
