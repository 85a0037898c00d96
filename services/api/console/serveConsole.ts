import { open, type FileHandle } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { Context, Middleware } from 'koa';
import { LRUCache } from 'lru-cache';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { withWaitBudget } from '../../../shared/lib/time/waitBudget.ts';
import { MIB } from '../../../shared/lib/units.ts';
import type { ConsoleState } from '../../../shared/ports/consoleBuild.ts';
import type { ConsoleContext, RouteContext } from '../context.ts';
import { respondNotModified } from '../http/responses/etag.ts';
import { isLocal, signIn } from './signIn.ts';
import { renderStatusPage } from './statusPage.ts';

const PREFIX = '/console';
/** The component that pages of other hosts embed. */
const EMBEDDED_SCRIPT = 'turnlog-chat.js';
const IMMUTABLE = 'public, max-age=31536000, immutable';
const SHORT = 'public, max-age=300';
/** The types of files that have a path. Others, such as the compressed ones, have none. */
const TYPES = new Set(['.css', '.html', '.ico', '.js', '.json', '.png', '.svg', '.txt', '.woff2']);
/** A file in the folder or in `assets/`. Names never begin with a dot, so that no path leads out. */
const FILE = /^(?:assets\/)?\w[\w-]*(?:\.[\w-]+)+$/;
/** A view of the console. Its segments have no dot, which tells them from files. */
const VIEW = /^[\w~%!$&'()*+,;=:@/-]*$/;
/** The suffix of the compressed files by their encoding. */
const SUFFIXES = { br: '.br', gzip: '.gz' } as const;

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

function setSecurityHeaders(ctx: Context): void {
  ctx.set({
    'content-security-policy': POLICY,
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
  });
}

/**
 * The contents of files that were sent, by inode, size and modification time: each is in memory once for all of
 * its responses, however slowly clients read. A build has 1.5 MB, with its compressed files. A file
 * beyond the limit would be read for each response.
 */
const contents = new LRUCache<string, Promise<Buffer>>({ maxSize: 16 * MIB });

interface OpenFile {
  file: FileHandle;
  size: number;
  modifiedMs: number;
  /** One for all spellings of its name, where the file system ignores case. */
  inode: number;
}

/** Opens a file; undefined if there is none. */
async function openFile(path: string): Promise<OpenFile | undefined> {
  let file: FileHandle;
  try {
    file = await open(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw error;
  }
  const { size, mtimeMs, ino } = await file.stat();
  return { file, size, modifiedMs: mtimeMs, inode: ino };
}

/** Reads a file unless its content is in memory. Concurrent responses read it once. */
function readShared({ file, size, modifiedMs, inode }: OpenFile): Promise<Buffer> {
  const key = `${inode} ${size} ${modifiedMs}`;
  const cached = contents.get(key);
  if (cached) return cached;
  const content = file.readFile();
  contents.set(key, content, { size: size + 1 });
  content.catch(() => contents.delete(key));
  return content;
}

/** The compressed file that the client accepts, or the file itself. */
async function openVariant(
  ctx: Context,
  path: string,
): Promise<(OpenFile & { encoding?: 'br' | 'gzip' }) | undefined> {
  const isNegotiated = ctx.get('accept-encoding') !== '';
  for (const encoding of ['br', 'gzip'] as const) {
    if (!isNegotiated || ctx.acceptsEncodings(encoding) === false) continue;
    const compressed = await openFile(path + SUFFIXES[encoding]);
    if (compressed) return { ...compressed, encoding };
  }
  return openFile(path);
}

const cachingOf = (name: string): string => {
  if (name.startsWith('assets/')) return IMMUTABLE;
  return name === EMBEDDED_SCRIPT ? SHORT : 'no-cache';
};

/** Sends a file, which has been compressed at its build. Returns false if there is none. */
async function sendFile(ctx: Context, folder: string, name: string): Promise<boolean> {
  const variant = await openVariant(ctx, join(folder, name));
  if (!variant) return false;
  const { file, size, modifiedMs, encoding } = variant;
  const etag = `W/"${size.toString(36)}-${Math.round(modifiedMs).toString(36)}"`;
  ctx.state['precompressed'] = true;
  try {
    if (!respondNotModified(ctx, etag, cachingOf(name)) && ctx.method !== 'HEAD')
      ctx.body = await readShared(variant);
  } finally {
    await file.close();
  }
  if (ctx.status === 304) return true;
  ctx.type = extname(name);
  ctx.length = size;
  if (encoding) ctx.set('content-encoding', encoding);
  return true;
}

function allowOtherHosts(ctx: Context): void {
  ctx.set({ 'cross-origin-resource-policy': 'cross-origin', 'access-control-allow-origin': '*' });
}

/** Omits the build's output, which names folders and registries. */
function withoutOutput(state: ConsoleState): ConsoleState {
  if (state.kind === 'building') return { ...state, output: '' };
  if (state.kind === 'failed') return { ...state, reason: 'The log of the service says why.' };
  return state;
}

async function sendView(ctx: Context, site: ConsoleContext): Promise<void> {
  const state = await site.visit();
  if (state.kind === 'ready' && (await sendFile(ctx, site.folder, 'index.html'))) return;
  const { html, policy } = renderStatusPage(isLocal(ctx) ? state : withoutOutput(state));
  ctx.set({ 'content-security-policy': policy, 'cache-control': 'no-store' });
  ctx.type = 'html';
  ctx.body = html;
}

/** The path below `/console`; undefined for a path outside. */
function pathBelow({ path }: Context): string | undefined {
  if (path === PREFIX) return '';
  return path.startsWith(`${PREFIX}/`) ? path.slice(PREFIX.length + 1) : undefined;
}

function refuseMethod(ctx: Context, allowed: string): void {
  ctx.status = 405;
  ctx.set('allow', allowed);
}

async function serve(
  api: RouteContext,
  site: ConsoleContext,
  { ctx, path }: { ctx: Context; path: string },
): Promise<void> {
  setSecurityHeaders(ctx);
  const isSignIn = path === 'sign-in';
  if (isSignIn && ctx.method === 'POST') return signIn(api, site, ctx);
  if (ctx.method !== 'GET' && ctx.method !== 'HEAD')
    return refuseMethod(ctx, isSignIn ? 'GET, HEAD, POST' : 'GET, HEAD');
  const isFile = FILE.test(path) && TYPES.has(extname(path));
  if (isFile && path === EMBEDDED_SCRIPT) allowOtherHosts(ctx);
  if (isFile && (await sendFile(ctx, site.folder, path))) return undefined;
  if (isFile || !VIEW.test(path) || path.startsWith('assets/'))
    throw new TurnlogError('not_found', 'The console has no such file.');
  return sendView(ctx, site);
}

/**
 * Serves the console: the files of its build, `index.html` for each of its views, a page about the
 * build while there are none, and the sign-in. None of them needs an API key.
 */
export const serveConsole =
  (api: RouteContext, site: ConsoleContext): Middleware =>
  (ctx, next) => {
    const path = pathBelow(ctx);
    if (path === undefined) return next();
    const isUnanswered = (): boolean => !ctx.res.destroyed;
    return withWaitBudget(api.limits.storeWaitMs, isUnanswered, () =>
      serve(api, site, { ctx, path }),
    );
  };
