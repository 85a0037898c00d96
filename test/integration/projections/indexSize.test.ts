import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { currentGeneration, generationFile } from '../../../infra/sqlite/readModels/generations.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { eventually } from '../../support/processes/operator.ts';

const TURNS = 20;
/** As many compounds as have all their parts and beginnings indexed. */
const WORDS = 1_000;

let service: TestService;
beforeAll(async () => {
  service = await startTestService(() => ({ status: 400 }));
});
afterAll(() => service.close());

/** `abcdefGh`: a word of the longest indexed beginning, with two parts. */
function compound(): string {
  const letters = Array.from(randomBytes(8), (byte) => String.fromCharCode(97 + (byte % 26)));
  letters[6] = letters[6]!.toUpperCase();
  return letters.join('');
}

test('the word index of texts made for it is no larger than the documentation says', async () => {
  const agent = await service.createAgent();
  for (let turn = 0; turn < TURNS; turn += 1) {
    const input = Array.from({ length: WORDS }, compound).join(' ');
    await service.post(`/v1/agents/${agent}/run`, { input });
  }
  const file = generationFile(service.folder, currentGeneration(service.folder)!);
  using database = new DatabaseSync(file, { readOnly: true });
  const numberOf = (sql: string): number => Number(database.prepare(sql).get()!['n']);
  await eventually(
    async () => numberOf('SELECT count(*) AS n FROM turn_words'),
    (indexed) => indexed === TURNS,
  );
  const index = numberOf(
    `SELECT sum(pgsize) AS n FROM dbstat WHERE name LIKE 'word\\_index%' ESCAPE '\\' OR name LIKE '%turn\\_words%' ESCAPE '\\'`,
  );
  const guide = await readFile(new URL('../../../docs/operations.md', import.meta.url), 'utf8');
  const [, documented] = /The search index adds up to (\d+) times that/.exec(guide)!;
  const times = index / numberOf("SELECT sum(bytes) AS n FROM storage WHERE day = ''");
  expect(times).toBeGreaterThan(5);
  expect(times).toBeLessThan(Number(documented));
}, 60_000);
