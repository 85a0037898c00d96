import type { CommandContext } from '../commandHandling/context.ts';
import type { Claim } from './claim.ts';

/** How something is created under an id that the first try of a request has reserved. */
interface Creation<Created> {
  /** What an earlier try created; undefined where none did. */
  before: () => Promise<Created | undefined>;
  create: () => Promise<Created>;
}

/**
 * Of the tries of one claimed request one creates it, and each is given what was created. Errors:
 * those of the two.
 */
export async function createOnce<Created>(
  { onReplayed }: Pick<CommandContext, 'onReplayed'>,
  claim: Claim | undefined,
  { before, create }: Creation<Created>,
): Promise<Created> {
  const again = async (): Promise<Created | undefined> => {
    const created = await before();
    if (created) onReplayed?.();
    return created;
  };
  const created = claim?.first === false ? await again() : undefined;
  if (created) return created;
  try {
    return await create();
  } catch (error) {
    // Another try at the same time may have created it, and so be why this one is refused.
    const another = claim && (await again().catch(() => undefined));
    if (another) return another;
    throw error;
  }
}
