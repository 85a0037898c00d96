import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';

const { parse, IPv4, IPv6 } = ipaddr;
type IPv4 = ipaddr.IPv4;
type IPv6 = ipaddr.IPv6;

/** In a public range but internal to a platform: Azure's metadata and DHCP. */
const OF_PLATFORMS = new Set(['168.63.129.16']);

/** Unicast addresses of the internet. All others are special or unassigned. */
const GLOBAL_UNICAST: [IPv6, number] = [IPv6.parse('2000::'), 3];
/** The well-known NAT64 prefix, with an IPv4 address in the last four bytes (RFC 6052). */
const NAT64: [IPv6, number] = [IPv6.parse('64:ff9b::'), 96];

const within = (address: IPv6): IPv4 => new IPv4(address.toByteArray().slice(12));

/** The destination of a packet: the embedded address of an IPv4-mapped or NAT64 address. */
function unwrapped(text: string): IPv4 | IPv6 {
  const address = parse(text);
  if (address instanceof IPv4) return address;
  return address.isIPv4MappedAddress() || address.match(NAT64) ? within(address) : address;
}

/** The addresses of this machine, where services may be closed to the internet. */
const ownAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap((entries) =>
    (entries ?? []).map(({ address }) => address),
  );

/**
 * Whether a text is an address of the public internet, other than this machine's. Returns false for
 * private, loopback, link-local, shared, multicast, reserved and metadata addresses in any notation,
 * and for text that is not an address.
 */
export function isPublicAddress(text: string, own: readonly string[] = ownAddresses()): boolean {
  try {
    const address = unwrapped(text);
    if (address.range() !== 'unicast') return false;
    if (address instanceof IPv6 && !address.match(GLOBAL_UNICAST)) return false;
    const plain = address.toString();
    return !OF_PLATFORMS.has(plain) && !own.some((entry) => unwrapped(entry).toString() === plain);
  } catch {
    return false;
  }
}
