import { hostName, type Host } from './connectionString.ts';

/** Work on hosts, one at a time for each. */
interface OncePerHost {
  /** Does nothing where the host is being worked on. */
  run(host: Host, work: () => Promise<void>): Promise<void>;
  /** True while some host is being worked on. */
  isBusy(): boolean;
}

export function createOncePerHost(): OncePerHost {
  const busy = new Set<string>();
  return {
    async run(host, work) {
      const name = hostName(host);
      if (busy.has(name)) return;
      busy.add(name);
      try {
        await work();
      } finally {
        busy.delete(name);
      }
    },
    isBusy: () => busy.size > 0,
  };
}
