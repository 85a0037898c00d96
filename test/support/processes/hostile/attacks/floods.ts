import { randomBytes } from 'node:crypto';
import type { Battle } from '../attack.ts';

const CLIENTS = 32;

/** Keys that nobody has: of the right shape, with the id of a real key, and of no shape at all. */
function wrongKeys({ prey }: Battle): (() => string)[] {
  const secret = (): string => randomBytes(32).toString('hex');
  const [, id] = /^tl_(key_\w{26})_/.exec(prey.key) ?? [];
  return [
    () => `tl_key_01${randomBytes(12).toString('hex')}_${secret()}`,
    () => `tl_${id}_${secret()}`,
    () => randomBytes(12).toString('base64'),
    () => 'x'.repeat(8_000),
  ];
}

/** Logins that fail, from the address that valid clients have, too. */
export async function failLogins(battle: Battle): Promise<void> {
  const keys = wrongKeys(battle);
  await battle.clients(CLIENTS, (agent, client) => {
    const key = keys[client % keys.length]!();
    return battle.call({ path: '/v1/agents?limit=1', key, agent });
  });
}

/** Small requests of one key, as many as it can. */
export async function exceedRate({ clients, call, prey }: Battle): Promise<void> {
  const path = `/v1/agents/${prey.agents.quick}`;
  const body = JSON.stringify({ input: 'hi' });
  await clients(CLIENTS, (agent, client) =>
    client % 4 === 0
      ? call({ method: 'POST', path: `${path}/run`, body, agent })
      : call({ path, agent }),
  );
}
