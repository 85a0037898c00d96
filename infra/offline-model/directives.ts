import { LIMITS } from '../../shared/limits.ts';

/** The directives at the beginning of an input. */
export interface Directives {
  /** `/slow`, `/slow 500`: milliseconds before each word of the answer, streamed or not. */
  pauseMs: number | undefined;
  /** `/fail`, `/fail 429`: the HTTP status of the failure. */
  failWith: number | undefined;
  /** `/reason`: the answer comes with reasoning. */
  reasons: boolean;
  /** `/call clock {"time_zone":"UTC"}`: the functions to call, in one answer; arguments as JSON. */
  calls: { name: string; arguments: string }[];
  /** The input after the directives. */
  rest: string;
}

const DIRECTIVE = /^\/(?:(slow|fail|reason)(?:\s+(\d+))?|call\s+([\w-]+))(?=\s|$)\s*/;

/** The JSON object at the start of a text, as it is written; undefined if there is none. */
function leadingObject(text: string): string | undefined {
  if (!text.startsWith('{')) return undefined;
  for (let end = text.indexOf('}'); end >= 0; end = text.indexOf('}', end + 1)) {
    const candidate = text.slice(0, end + 1);
    try {
      JSON.parse(candidate);
      return candidate;
    } catch {
      // The object may end at a later brace.
    }
  }
  return undefined;
}

/** Reads the directives at the start of an input, one after another. */
export function parseDirectives(input: string): Directives {
  const { searchedChars, slowWordMs, longestPauseMs } = LIMITS.offlineModel;
  const directives: Directives = {
    pauseMs: undefined,
    failWith: undefined,
    reasons: false,
    calls: [],
    rest: '',
  };
  let searched = input.trimStart().slice(0, searchedChars);
  const beyond = input.trimStart().slice(searchedChars);
  for (let match; (match = DIRECTIVE.exec(searched));) {
    searched = searched.slice(match[0].length);
    const [, directive, number, name] = match;
    if (directive === 'slow')
      directives.pauseMs = Math.min(Number(number ?? slowWordMs), longestPauseMs);
    if (directive === 'fail')
      directives.failWith = /^[45]\d\d$/.test(number ?? '') ? Number(number) : 500;
    if (directive === 'reason') directives.reasons = true;
    if (name !== undefined) {
      const object = leadingObject(searched);
      directives.calls.push({ name, arguments: object ?? '{}' });
      searched = searched.slice(object?.length ?? 0).trimStart();
    }
  }
  directives.rest = searched + beyond;
  return directives;
}
