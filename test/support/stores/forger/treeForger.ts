/** A forger of the tree of a transparency log: someone with write access to its files or tables. */
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Checkpoint } from '../../../../shared/ports/eventStore.ts';
import type { TileFile, TreeState } from '../../../../shared/transparency/tileStore.ts';
import { leafEntry } from '../../../../shared/transparency/tlog/leaf.ts';
import { openRightEdge } from '../../../../shared/transparency/tlog/rightEdge.ts';
import { memoryTiles } from '../../fakes/memoryTiles.ts';
import { execute } from '../../servers/postgres/postgresDatabase.ts';

/** What can be deleted: entries and hashes of leaves, where bundles begin, the state, a checkpoint. */
export type TreePart = 'bundles' | 'checkpoint' | 'entries' | 'hashes' | 'state';

export interface TreeForger {
  /** Deletes it, or a part alone. */
  deleteTree(part?: TreePart): Promise<void>;
  /** Leaves it in its place and makes its store refuse to read it. Resolves with what undoes this. */
  makeUnreadable(): Promise<() => Promise<void>>;
  /** Puts another hash in the entry of an event, of the same length. */
  replaceHash(hash: string, other: string): Promise<void>;
  /** The newest checkpoint; undefined if there is none. */
  checkpoint(): Promise<string | undefined>;
  /** Puts another checkpoint in its place. */
  putCheckpoint(note: string): Promise<void>;
  /** Makes the tree of another origin the one that was opened last. */
  openAnother(origin: string): Promise<void>;
  /** Puts the tiles of a tree of these leaves under an origin, and the state of the current tree. */
  buildTree(origin: string, hashes: readonly string[]): Promise<void>;
  /** Puts other values into the state of the tree. */
  changeState(changes: { size?: number; last?: Partial<Checkpoint> }): Promise<void>;
}

async function tilesOf(hashes: readonly string[]): Promise<readonly TileFile[]> {
  const edge = await openRightEdge(memoryTiles(), 0);
  for (const [index, hash] of hashes.entries()) edge.append(leafEntry(hash, index));
  return edge.takeFiles();
}

const FILES: Record<TreePart, string> = {
  bundles: 'bundles',
  checkpoint: 'checkpoint',
  entries: 'tile/entries',
  hashes: 'tile/0',
  state: 'state.json',
};

/** The tree in the files of a data folder. */
function treeFiles(data: string): TreeForger {
  const trees = join(data, 'tlog');
  const path = async (file: string): Promise<string> =>
    join(trees, (await readFile(join(trees, '.current'), 'utf8')).trim(), file);
  return {
    async makeUnreadable() {
      const folder = (await path('')).replace(/\/$/, '');
      const aside = join(data, 'aside');
      await rename(folder, aside);
      // A link to itself.
      await symlink(basename(folder), folder);
      return async () => {
        await rm(folder);
        await rename(aside, folder);
      };
    },
    deleteTree: async (part) => rm(part ? await path(FILES[part]) : trees, { recursive: true }),
    async replaceHash(hash, other) {
      const options = { recursive: true, withFileTypes: true } as const;
      const files = existsSync(trees) ? await readdir(trees, options) : [];
      for (const { parentPath, name } of files.filter((file) => file.isFile())) {
        const file = join(parentPath, name);
        const bytes = await readFile(file, 'latin1');
        if (file.includes('entries')) await writeFile(file, bytes.replace(hash, other), 'latin1');
      }
    },
    putCheckpoint: async (note) => writeFile(await path(FILES.checkpoint), note),
    openAnother: (origin) => writeFile(join(trees, '.current'), `${origin}\n`),
    async buildTree(origin, hashes) {
      const state = await readFile(await path(FILES.state));
      const files = [...(await tilesOf(hashes)), { path: FILES.state, bytes: state }];
      for (const { path: name, bytes } of files) {
        const file = join(trees, origin, name);
        await mkdir(dirname(file), { recursive: true });
        await writeFile(file, bytes);
      }
    },
    async changeState({ last, ...changes }) {
      const file = await path(FILES.state);
      const state = JSON.parse(await readFile(file, 'utf8')) as TreeState;
      const changed = { ...state, ...changes, checkpoint: { ...state.checkpoint, ...last } };
      await writeFile(file, `${JSON.stringify(changed)}\n`);
    },
    checkpoint: async () => {
      try {
        return await readFile(await path(FILES.checkpoint), 'utf8');
      } catch {
        return undefined;
      }
    },
  };
}

const STATEMENTS: Record<TreePart, string> = {
  bundles: 'DELETE FROM turnlog.tlog_bundles',
  checkpoint: 'UPDATE turnlog.tlog_trees SET note = NULL',
  entries: "DELETE FROM turnlog.tlog_tiles WHERE path LIKE 'tile/entries/%'",
  hashes: "DELETE FROM turnlog.tlog_tiles WHERE path LIKE 'tile/0/%'",
  state: 'UPDATE turnlog.tlog_trees SET size = 0, checkpoint = NULL',
};

/** The tree in the tables of a database. */
const treeTables = (url: string): TreeForger => ({
  async deleteTree(part) {
    const tables = ['tlog_trees', 'tlog_tiles', 'tlog_bundles'];
    const all = tables.map((table) => `DELETE FROM turnlog.${table}`);
    for (const sql of part ? [STATEMENTS[part]] : all) await execute(url, sql);
  },
  async makeUnreadable() {
    const renameColumn = (from: string, to: string) =>
      execute(url, `ALTER TABLE turnlog.tlog_trees RENAME COLUMN ${from} TO ${to}`);
    await renameColumn('size', 'leaves');
    return async () => void (await renameColumn('leaves', 'size'));
  },
  async replaceHash(hash, other) {
    await execute(
      url,
      `UPDATE turnlog.tlog_tiles SET bytes = decode(replace(encode(bytes, 'hex'), encode($1, 'hex'), encode($2, 'hex')), 'hex')
       WHERE path LIKE 'tile/entries/%'`,
      [Buffer.from(hash), Buffer.from(other)],
    );
  },
  async putCheckpoint(note) {
    await execute(url, 'UPDATE turnlog.tlog_trees SET note = $1', [note]);
  },
  async openAnother(origin) {
    await execute(
      url,
      `INSERT INTO turnlog.tlog_trees (origin, opened) SELECT $1, max(opened) + 1 FROM turnlog.tlog_trees
       ON CONFLICT (origin) DO UPDATE SET opened = excluded.opened`,
      [origin],
    );
  },
  async buildTree(origin, hashes) {
    await execute(
      url,
      `INSERT INTO turnlog.tlog_trees (origin, opened, size, checkpoint)
       SELECT $1, 0, size, checkpoint FROM turnlog.tlog_trees ORDER BY opened DESC LIMIT 1
       ON CONFLICT (origin) DO NOTHING`,
      [origin],
    );
    for (const { path, bytes } of await tilesOf(hashes))
      await execute(
        url,
        `INSERT INTO turnlog.tlog_tiles (origin, path, bytes) VALUES ($1, $2, $3)
         ON CONFLICT (origin, path) DO UPDATE SET bytes = excluded.bytes`,
        [origin, path, Buffer.from(bytes)],
      );
  },
  async changeState({ size, last }) {
    const [row] = await execute(url, 'SELECT size, checkpoint FROM turnlog.tlog_trees');
    const checkpoint = { ...(JSON.parse(row!['checkpoint'] as string) as Checkpoint), ...last };
    await execute(url, 'UPDATE turnlog.tlog_trees SET size = $1, checkpoint = $2', [
      size ?? row!['size'],
      JSON.stringify(checkpoint),
    ]);
  },
  async checkpoint() {
    const [row] = await execute(
      url,
      'SELECT note FROM turnlog.tlog_trees ORDER BY opened DESC LIMIT 1',
    );
    return (row?.['note'] as string | null | undefined) ?? undefined;
  },
});

/** A forger of the tree of a service with these options. */
export const treeForger = ({ DATABASE_URL, DATA_DIR }: Record<string, string>): TreeForger =>
  DATABASE_URL === undefined ? treeFiles(DATA_DIR!) : treeTables(DATABASE_URL);
