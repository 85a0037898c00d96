import type { OwnTree, SignedHead } from '../../../shared/transparency/ownTree.ts';
import type { TileReader } from '../../../shared/transparency/tileStore.ts';
import type { TreeHead } from '../../../shared/transparency/tlog/verify.ts';

/** A tree as a reader has it, of which a checkpoint of this size and root is signed; undefined for none. */
export function signedTree(
  reader: TileReader,
  signed: () => TreeHead | undefined,
  ids = { treeId: 'tree', logId: 'tree' },
): OwnTree {
  let head: SignedHead | undefined;
  return {
    ...reader,
    doubt: () => undefined,
    async head() {
      const next = signed();
      if (next && (next.size !== head?.size || ids.treeId !== head.treeId))
        head = {
          ...next,
          root: Buffer.from(next.root),
          ...ids,
          origin: `turnlog/${ids.treeId}`,
          note: '',
          reader,
        };
      return next && head;
    },
  };
}
