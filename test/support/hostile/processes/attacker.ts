/**
 * One attack against a service, for so many seconds: `attacker.ts <attack> <url> <seconds> <prey as
 * JSON>`. Prints what it was answered as one line of JSON, and ends.
 */
import { setMaxListeners } from 'node:events';
import { createBattle } from '../attack.ts';
import { ATTACKS, type AttackName } from '../attacks/index.ts';
import type { Prey } from '../world.ts';

const [name, url, seconds, prey] = process.argv.slice(2) as [AttackName, string, string, string];
const over = new AbortController();
setMaxListeners(0, over.signal);
const battle = createBattle(url, JSON.parse(prey) as Prey, over.signal);
setTimeout(() => over.abort(), Number(seconds) * 1_000);
await ATTACKS[name].attack(battle);
process.stdout.write(`${JSON.stringify(battle.report)}\n`, () => process.exit(0));
