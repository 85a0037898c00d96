import type { Context } from 'koa';
import { LIMITS } from '../../../shared/limits.ts';

/** The supported preferences of a client (RFC 7240). */
interface Preferences {
  respondAsync: boolean;
  /** In seconds, at most LIMITS.turn.waitSeconds; undefined without this preference. */
  wait: number | undefined;
}

/** The trimmed members of a list. A quoted comma does not separate members. */
function splitMembers(header: string): string[] {
  const members: string[] = [];
  let begin = 0;
  let quoted = false;
  for (let at = 0; at <= header.length; at += 1) {
    const char = header[at];
    if (char === '\\' && quoted) at += 1;
    else if (char === '"') quoted = !quoted;
    else if (char === undefined || (char === ',' && !quoted)) {
      members.push(header.slice(begin, at).trim());
      begin = at + 1;
    }
  }
  return members;
}

/** A preference's name and value, without its parameters. */
function parseMember(member: string): [name: string, value: string] {
  const [preference = ''] = member.split(';', 1);
  const at = preference.indexOf('=');
  const name = at === -1 ? preference : preference.slice(0, at);
  const value = at === -1 ? '' : preference.slice(at + 1).trim();
  return [name.trim().toLowerCase(), value.replaceAll('"', '')];
}

const SECONDS = /^\d{1,9}$/;

/**
 * Parses a `Prefer` header in time linear to its length. The first of repeated preferences counts;
 * unknown preferences and overlong headers are ignored (RFC 7240).
 */
export function parsePrefer(header: string): Preferences {
  const preferences = new Map<string, string>();
  if (header.length <= LIMITS.turn.preferChars)
    for (const [name, value] of splitMembers(header).map(parseMember))
      if (!preferences.has(name)) preferences.set(name, value);
  const wait = preferences.get('wait');
  return {
    respondAsync: preferences.get('respond-async') === '',
    wait:
      wait !== undefined && SECONDS.test(wait)
        ? Math.min(Number(wait), LIMITS.turn.waitSeconds)
        : undefined,
  };
}

/** The preferences of a request. */
export const readPreferences = (ctx: Context): Preferences => parsePrefer(ctx.get('prefer'));

/** Sets `Preference-Applied` to the preferences that were followed. */
export function setPreferenceApplied(ctx: Context, { respondAsync, wait }: Preferences): void {
  const applied = [
    ...(respondAsync ? ['respond-async'] : []),
    ...(wait === undefined ? [] : [`wait=${wait}`]),
  ];
  if (applied.length > 0) ctx.set('preference-applied', applied.join(', '));
}
