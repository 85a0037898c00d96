/**
 * One attack against a service: `attacker.ts <attack> <url> <seconds> <prey as JSON> <answers>`. It
 * goes on for so many seconds, and for longer until it has met each of these answers (as the table
 * counts them, separated by commas). Prints what it was answered as one line of JSON, and ends.
 */
import { setMaxListeners } from 'node:events';
import { createBattle } from '../attack.ts';
import { ATTACKS, type AttackName } from '../attacks/index.ts';
import type { Prey } from '../world.ts';

/** A busy machine takes its time. */
const PATIENCE_MS = 120_000;
const LOOK_MS = 100;

const [name, url, seconds, prey, answers] = process.argv.slice(2) as [
  AttackName,
  ...[string, string, string, string],
];
const wanted = answers.split(',').filter((kind) => kind !== '');
const over = new AbortController();
setMaxListeners(0, over.signal);
const battle = createBattle(url, JSON.parse(prey) as Prey, over.signal);
const least = performance.now() + Number(seconds) * 1_000;
const timer = setInterval(() => {
  const now = performance.now();
  const isMet = wanted.every((kind) => battle.report.answers[kind] !== undefined);
  if (now < least || (!isMet && now < least + PATIENCE_MS)) return;
  clearInterval(timer);
  over.abort();
}, LOOK_MS);
await ATTACKS[name].attack(battle);
process.stdout.write(`${JSON.stringify(battle.report)}\n`, () => process.exit(0));
