/**
 * Reads Jest's JSON results. `results.mjs files FIRST` prints the failed test files, one per line;
 * `results.mjs counts FIRST SECOND` prints the passed and the failed tests, then the failed tests'
 * names; `results.mjs skipped FIRST SECOND` counts the skipped tests of each file. The second file
 * is that of a repetition, if there was one: its results replace the first's.
 */
import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';

const say = (line) => process.stdout.write(`${line}\n`);
const [, , what, ...paths] = process.argv;
const reports = paths.filter(existsSync).map((path) => JSON.parse(readFileSync(path, 'utf8')));
const pathOf = (file) => relative('.', file.name);
const hasFailed = ({ status }) => status === 'failed';
const failedFiles = (report) => report.testResults.filter(hasFailed);

function failedTests(file) {
  const tests = file.assertionResults.filter(hasFailed);
  if (tests.length === 0) return [pathOf(file)];
  return tests.map(({ fullName }) => `${pathOf(file)}: ${fullName}`);
}

/** The files of the last report, and those of the first that passed, which the repetition left out. */
const lastFiles = () => [
  ...reports
    .slice(0, -1)
    .flatMap(({ testResults }) => testResults.filter((file) => !hasFailed(file))),
  ...reports.at(-1).testResults,
];
const countOf = (files, wanted) =>
  files.flatMap((file) => file.assertionResults).filter(({ status }) => status === wanted).length;

if (what === 'files') for (const file of failedFiles(reports[0])) say(pathOf(file));
if (what === 'counts') {
  const last = reports.at(-1);
  const failed = last.numFailedTests + last.numRuntimeErrorTestSuites;
  say(`${countOf(lastFiles(), 'passed')} ${failed}`);
  for (const name of failedFiles(last).flatMap(failedTests)) say(name);
}
if (what === 'skipped')
  for (const file of lastFiles()) {
    const count = countOf([file], 'pending');
    if (count > 0) say(`${count} of ${pathOf(file)}`);
  }
