import type { Agent } from 'node:http';
import { size } from '../../../jest/size.ts';
import type { Battle } from '../attack.ts';

const CLIENTS = 16;
const QUOTAS = {
  bytes_per_day: size({ small: 150_000_000, full: 2_000_000_000 }),
  audits_per_day: size({ small: 100, full: 50_000 }),
};

/** The quotas of the service, which the account of the attackers reaches. */
export const STORAGE_OPTIONS = {
  ACCOUNT_BYTES_PER_DAY: String(QUOTAS.bytes_per_day),
  ACCOUNT_AUDITS_PER_DAY: String(QUOTAS.audits_per_day),
};

const LARGE_AGENT = JSON.stringify({
  name: 'Large',
  instruction: 'x'.repeat(250_000),
  model: 'quick',
});

type Use = Record<keyof typeof QUOTAS, number>;

async function readUse({ call }: Battle): Promise<Use> {
  const answer = await call({ path: '/v1/usage/storage' });
  const usedOf = (name: string): number =>
    Number(new RegExp(`"${name}":\\{"used":(\\d+)`).exec(answer?.head ?? '')?.[1] ?? 0);
  return {
    bytes_per_day: usedOf('bytes_per_day'),
    audits_per_day: usedOf('audits_per_day'),
  };
}

/**
 * Notes a quota that is exceeded by more than the ends of runs that had begun. Earlier attacks, which
 * had no quotas, may have used more than these.
 */
async function checkUse(battle: Battle, before: Use): Promise<void> {
  const use = await readUse(battle);
  for (const name of Object.keys(QUOTAS) as (keyof Use)[]) {
    const most = Math.max(QUOTAS[name], before[name]) * 1.1;
    if (use[name] > most)
      battle.report.oddities.push(`${name}: ${use[name]} of ${QUOTAS[name]} are used`);
  }
  await battle.pause(1_000);
}

/** Stores as much as it can: large agents, and reads that are recorded. */
export async function fillStorage(battle: Battle): Promise<void> {
  const { clients, call, prey } = battle;
  const kinds = [
    (agent: Agent) => call({ method: 'POST', path: '/v1/agents', body: LARGE_AGENT, agent }),
    (agent: Agent) => call({ path: `/v1/sessions/${prey.session}/events?limit=1`, agent }),
  ];
  const before = await readUse(battle);
  await Promise.all([
    clients(1, () => checkUse(battle, before)),
    clients(CLIENTS, (agent, client) => kinds[client % kinds.length]!(agent)),
  ]);
}
