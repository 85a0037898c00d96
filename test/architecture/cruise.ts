import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import swc from '@swc/core/Visitor.js';
import { cruise, type ICruiseResult, type IForbiddenRuleType } from 'dependency-cruiser';
import type { Edge, Rule } from './rules.ts';

const FOLDERS = ['services', 'shared', 'infra', 'examples'];
/** A separate program, for browsers; dependencies.test.ts restricts its imports. */
const CONSOLE_FOLDER = 'services/console/';
const WORKER = /new Worker\(/g;
const WORKER_FILE = /new URL\('([^']+\.m?[tj]s)', import\.meta\.url\)/g;

/** The visitor of syntax trees does not know `using` yet. */
const { visitStatement } = swc.Visitor.prototype;
swc.Visitor.prototype.visitStatement = function visitAny(statement) {
  const { type, decls } = statement as unknown as { type: string; decls: never[] };
  if (type !== 'UsingDeclaration') return visitStatement.call(this, statement);
  this.visitVariableDeclarators(decls);
  return statement;
};

/** The rule as the cruiser takes it. */
const ruleOf = ({ name, comment, from, to }: Rule): IForbiddenRuleType => ({
  name,
  comment,
  from,
  to,
});

/** The imports of a tree, of types and at run time, too, and what breaks the rules. */
export async function cruiseTree(root: string, rules: readonly Rule[]): Promise<ICruiseResult> {
  const present = new Set(await readdir(root));
  const { output } = await cruise(
    FOLDERS.filter((folder) => present.has(folder)),
    {
      baseDir: root,
      parser: 'swc',
      tsPreCompilationDeps: true,
      doNotFollow: { path: 'node_modules' },
      exclude: { path: `^${CONSOLE_FOLDER}` },
      validate: true,
      ruleSet: { forbidden: rules.map(ruleOf) },
      enhancedResolveOptions: { extensions: ['.ts', '.mjs', '.js'] },
    },
  );
  return output as ICruiseResult;
}

/** What breaks the rules, each as `rule: from → to`. */
export const violationsIn = ({ summary }: ICruiseResult): string[] =>
  summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${to}`);

const isLibrary = (to: string): boolean => !/^(services|shared|infra|examples|test)\//.test(to);

/** The same for imports that are in no file of ours. */
export async function violationsOf(
  edges: readonly Edge[],
  rules: readonly Rule[],
): Promise<string[]> {
  const root = await mkdtemp(join(tmpdir(), 'turnlog-imports-'));
  const texts = new Map<string, string>();
  for (const [from, to] of edges) {
    const target = isLibrary(to) ? to : `./${relative(dirname(from), to)}`;
    texts.set(from, `${texts.get(from) ?? ''}import '${target}';\n`);
    if (!isLibrary(to)) texts.set(to, texts.get(to) ?? '');
  }
  try {
    for (const [file, text] of texts) {
      await mkdir(dirname(join(root, file)), { recursive: true });
      await writeFile(join(root, file), text);
    }
    return violationsIn(await cruiseTree(root, rules));
  } finally {
    await rm(root, { recursive: true });
  }
}

/**
 * The files that workers are started with, which no import names. Errors: an Error for a worker
 * whose file is not named in place.
 */
export async function workersIn(root: string): Promise<Edge[]> {
  const found: Edge[] = [];
  for (const folder of FOLDERS)
    for (const name of await readdir(join(root, folder), { recursive: true })) {
      const file = join(folder, name);
      if (!/\.m?[tj]s$/.test(name) || file.startsWith(CONSOLE_FOLDER)) continue;
      const text = await readFile(join(root, file), 'utf8');
      const named = [...text.matchAll(WORKER_FILE)].map(([, to]) => join(dirname(file), to!));
      if (named.length < [...text.matchAll(WORKER)].length)
        throw new Error(`${file} starts a worker without naming its file in place`);
      found.push(...named.map((to): Edge => [file, to]));
    }
  return found;
}
