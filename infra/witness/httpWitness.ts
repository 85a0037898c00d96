import { LIMITS } from '../../shared/limits.ts';
import type { CosignRequest, Witness, WitnessAnswer } from '../../shared/transparency/witness.ts';
import { parseVkey } from '../../shared/transparency/tlog/noteKeys.ts';
import { limitedFetch } from '../lib/http/limitedFetch.ts';
import { describeFailure, readLimitedText } from './response.ts';
import type { WitnessesFile } from './witnessesFile.ts';

/** The media type of a 409 response that contains the size (C2SP tlog-witness). */
const SIZE_TYPE = 'text/x.tlog.size';
/** No leading zeros, and few enough digits for an exact number. */
const SIZE = /^(0|[1-9]\d{0,14})\n?$/;

const bodyOf = ({ oldSize, proof, checkpoint }: CosignRequest): string =>
  [
    `old ${oldSize}`,
    ...proof.map((hash) => Buffer.from(hash).toString('base64')),
    '',
    checkpoint,
  ].join('\n');

/**
 * The statuses of C2SP tlog-witness. Response bodies are untrusted and never included in messages.
 */
const STATUS_MEANINGS: Readonly<Record<number, string>> = {
  400: 'takes the request for malformed',
  403: 'does not trust the key that signed the checkpoint',
  404: 'does not know the log: its operator has to add origin and key',
  422: 'finds that the checkpoint does not go on from the one that it cosigned last: the log was rewritten, or two logs have one origin',
  429: 'has been asked too often',
};

function describeStatus(status: number): string {
  if (status >= 300 && status < 400) return `redirects (${status}), which is not followed`;
  return `${STATUS_MEANINGS[status] ?? 'can’t cosign now'} (${status})`;
}

function sizeOf(response: Response, text: string): WitnessAnswer {
  const type = response.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase();
  const [, size] = SIZE.exec(text) ?? [];
  return type === SIZE_TYPE && size !== undefined
    ? { size: Number(size) }
    : { trouble: 'says that the old size is wrong (409), and not which one is right' };
}

async function toWitnessAnswer(response: Response): Promise<WitnessAnswer> {
  const { status } = response;
  if (status !== 200 && status !== 409) {
    await response.body?.cancel();
    const trouble = describeStatus(status);
    return status === 422 ? { trouble, contradicts: true } : { trouble };
  }
  const text = await readLimitedText(response, LIMITS.witness.answerBytes);
  if (text === undefined)
    return { trouble: `answers with more than ${LIMITS.witness.answerBytes} bytes` };
  return status === 200 ? { lines: text } : sizeOf(response, text);
}

/**
 * Creates a client for a witness that implements C2SP tlog-witness. `/add-checkpoint` is appended
 * to `url`. `answerMs` limits the time for a complete response, in milliseconds.
 */
export function createHttpWitness(
  { url, vkey }: WitnessesFile['witnesses'][number],
  answerMs: number = LIMITS.witness.answerMs,
): Witness {
  const address = `${url.replace(/\/+$/, '')}/add-checkpoint`;
  return {
    key: parseVkey(vkey),
    async addCheckpoint(request, signal) {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(answerMs)]);
      try {
        const response = await limitedFetch(address, {
          method: 'POST',
          body: bodyOf(request),
          headers: { 'content-type': 'text/plain; charset=utf-8' },
          redirect: 'manual',
          signal: limit,
        });
        return await toWitnessAnswer(response);
      } catch (error) {
        return { trouble: describeFailure(error, answerMs) };
      }
    },
  };
}
