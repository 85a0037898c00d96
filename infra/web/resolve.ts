import { Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { LIMITS } from '../../shared/limits.ts';

/** The addresses of a name; none where it has none, or nobody says. */
export type Resolve = (name: string) => Promise<string[]>;

const LOCALHOST = /^(.+\.)?localhost\.?$/;

/**
 * Asks the system's name servers, over sockets: the system's own look-up takes one of four threads
 * for as long as a hostile name server likes. So what stands in a hosts file is not known, but for
 * localhost.
 */
export const resolveName: Resolve = async (name) => {
  if (LOCALHOST.test(name)) return ['127.0.0.1', '::1'];
  const resolver = new Resolver({ timeout: LIMITS.web.resolveMs / 5, tries: 2 });
  const timer = setTimeout(() => resolver.cancel(), LIMITS.web.resolveMs);
  try {
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  } finally {
    clearTimeout(timer);
  }
};

/** The addresses of a URL's host, which may be one itself; IPv6 ones without brackets. */
export async function addressesOf(hostname: string, resolve: Resolve): Promise<string[]> {
  const bare = hostname.replace(/^\[|\]$/g, '');
  return isIP(bare) ? [bare] : resolve(hostname);
}
