import { Agent, request as httpRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { HEAD_BYTES, kindOf, oddityOf, type Answer } from './answers.ts';
import type { Prey } from './world.ts';

/** What attackers were answered, and what of it was wrong. */
export interface Report {
  /** How often each kind of answer came; `cut` for a connection that ended without one. */
  answers: Record<string, number>;
  /** What no answer may be, the first ones of each kind. */
  oddities: string[];
  /** What was acknowledged with 2xx: ids of agents and sessions. */
  agents: string[];
  sessions: string[];
}

export interface Call {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  headers?: Record<string, string>;
  body?: Buffer | string;
  key?: string | null;
  /** Ends the request before its answer. */
  signal?: AbortSignal;
  agent?: Agent;
}

/** What an attack works with. */
export interface Battle {
  url: string;
  prey: Prey;
  signal: AbortSignal;
  report: Report;
  /** Sends a request and reads all of the answer; undefined where the connection was cut. */
  call(call: Call): Promise<Answer | undefined>;
  /** Counts and checks an answer. */
  note(answer: Answer): void;
  /** So many clients, each with a connection of its own, that do the same until the end. */
  clients(
    count: number,
    act: (agent: Agent, client: number, turn: number) => Promise<unknown>,
  ): Promise<void>;
  pause(ms: number): Promise<void>;
}

const ODDITIES = 10;
const ACKNOWLEDGED = 2_000;
/** So that a refused connection is not tried again in a tight loop. */
const AFTER_CUT_MS = 20;

export const jsonHeaders = (key: string | null): Record<string, string> => ({
  'content-type': 'application/json',
  ...(key === null ? {} : { 'x-api-key': key }),
});

function send(url: string, options: Call, key: string | null, over: AbortSignal) {
  const { method = 'GET', path, body, agent } = options;
  const headers = { ...jsonHeaders(key), ...options.headers };
  const signal = options.signal ? AbortSignal.any([over, options.signal]) : over;
  return new Promise<Answer>((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const sent = httpRequest(
      { hostname, port, method, path, headers, signal, ...(agent && { agent }) },
      (response) => {
        const first: Buffer[] = [];
        let bytes = 0;
        let last: Buffer = Buffer.alloc(0);
        response.on('data', (chunk: Buffer) => {
          if (bytes < HEAD_BYTES) first.push(chunk);
          bytes += chunk.length;
          last = chunk;
        });
        response.on('error', reject);
        response.on('end', () => {
          const head = Buffer.concat(first).subarray(0, HEAD_BYTES).toString();
          const tail = last.subarray(-16).toString();
          const { statusCode = 0, headers: answered } = response;
          if (response.complete)
            resolve({ status: statusCode, headers: answered, head, tail, bytes });
          else reject(new Error('cut'));
        });
        response.on('close', () => reject(new Error('cut')));
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

/** Notes what a 2xx has promised to keep. */
function acknowledge({ head }: Answer, report: Report): void {
  const [, agent] = /^\{"success":true,"data":\{"agent_id":"(\w+)","created_at"/.exec(head) ?? [];
  if (agent !== undefined && report.agents.length < ACKNOWLEDGED) report.agents.push(agent);
  const [, session] = /"session_id":"(session_\w+)","metadata"/.exec(head) ?? [];
  if (session !== undefined && report.sessions.length < ACKNOWLEDGED) report.sessions.push(session);
}

/** A battle against the service at `url` until the signal. */
export function createBattle(url: string, prey: Prey, signal: AbortSignal): Battle {
  const report: Report = { answers: {}, oddities: [], agents: [], sessions: [] };
  const count = (kind: string): void => {
    report.answers[kind] = (report.answers[kind] ?? 0) + 1;
  };
  const pause = (ms: number): Promise<void> =>
    sleep(ms, undefined, { signal }).catch(() => undefined);

  function note(answer: Answer): void {
    count(kindOf(answer));
    const oddity = oddityOf(answer);
    if (oddity !== undefined && report.oddities.length < ODDITIES) report.oddities.push(oddity);
  }

  async function call(options: Call): Promise<Answer | undefined> {
    try {
      const key = options.key === undefined ? prey.key : options.key;
      const answer = await send(url, options, key, signal);
      note(answer);
      if (options.method === 'POST' && answer.status === 200) acknowledge(answer, report);
      return answer;
    } catch {
      if (signal.aborted) return undefined;
      count('cut');
      await pause(AFTER_CUT_MS);
      return undefined;
    }
  }

  async function clients(
    many: number,
    act: (agent: Agent, client: number, turn: number) => Promise<unknown>,
  ): Promise<void> {
    const one = async (client: number): Promise<void> => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      for (let turn = 0; !signal.aborted; turn += 1) await act(agent, client, turn);
      agent.destroy();
    };
    await Promise.all(Array.from({ length: many }, (_, client) => one(client)));
  }

  return { url, prey, signal, report, call, note, clients, pause };
}
