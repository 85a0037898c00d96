import type { Context } from 'koa';
import { LIMITS } from '../../../shared/limits.ts';

/** What a client prefers (RFC 7240), as far as it is known here. */
export interface Preferences {
  respondAsync: boolean;
  /** In seconds, at most LIMITS.turn.waitSeconds; undefined where none is preferred. */
  wait: number | undefined;
}

/** The members of a list, without blanks around them; a comma in quotes separates nothing. */
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
 * Reads a `Prefer` header, in time linear to its length. Of a preference that is given twice the
 * first one holds; what is not understood, or far too long, is ignored, as RFC 7240 has it.
 */
export function parsePrefer(header: string): Preferences {
  const found = new Map<string, string>();
  if (header.length <= LIMITS.turn.preferChars)
    for (const [name, value] of splitMembers(header).map(parseMember))
      if (!found.has(name)) found.set(name, value);
  const wait = found.get('wait');
  return {
    respondAsync: found.get('respond-async') === '',
    wait:
      wait !== undefined && SECONDS.test(wait)
        ? Math.min(Number(wait), LIMITS.turn.waitSeconds)
        : undefined,
  };
}

/** What the client of a request prefers. */
export const readPreferences = (ctx: Context): Preferences => parsePrefer(ctx.get('prefer'));

/** Tells the client which of its preferences were followed. */
export function setPreferenceApplied(ctx: Context, { respondAsync, wait }: Preferences): void {
  const applied = [
    ...(respondAsync ? ['respond-async'] : []),
    ...(wait === undefined ? [] : [`wait=${wait}`]),
  ];
  if (applied.length > 0) ctx.set('preference-applied', applied.join(', '));
}
