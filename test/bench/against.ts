/**
 * This checkout against another one: `node test/bench/against.ts ../another-checkout [cpu list runs
 * latency …]`.
 */
import { COMPARED_ROWS, compareWith } from './comparedRows.ts';
import { printReport, type Result } from './report.ts';

const [other, ...names] = process.argv.slice(2);
const all = Object.keys(COMPARED_ROWS);
if (other === undefined || names.some((name) => !all.includes(name))) {
  process.stdout.write(`Usage: node test/bench/against.ts <another checkout> [${all.join(' ')}]\n`);
  process.exitCode = 2;
} else {
  const results: Result[] = [];
  await compareWith(other, names.length > 0 ? names : all, (result) => {
    results.push(result);
    process.stderr.write(`${result.name}: ${result.ratio!.toFixed(2)} ×\n`);
  });
  printReport(results, 'the other');
}
