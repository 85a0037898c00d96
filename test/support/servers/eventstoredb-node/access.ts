import type grpc from '@grpc/grpc-js';
import type { NodeLog } from './log.ts';
import { isMetadataStream, type Acl, type Names } from './streamMetadata.ts';
import { createUsers, type User, type Users } from './users.ts';

/** Who makes a call: somebody whose password fits, or nobody that a name was given of. */
type Caller = User | 'anonymous';

export type Right = 'read' | 'write' | 'delete';

export interface Access {
  /** Undefined when the credentials are wrong. */
  caller: (authorization: string | undefined) => Caller | undefined;
  allows: (caller: Caller, right: Right, stream: string) => boolean;
  /** Absent where nobody is asked for a password. */
  users?: Users;
}

export const isAdmin = (caller: Caller): boolean =>
  caller !== 'anonymous' && caller.groups.includes('$admins');

/** A node that was told to be insecure: everyone may do everything. */
export const openAccess: Access = { caller: () => 'anonymous', allows: () => true };

const EVERYONE = '$all';
const ADMINS = '$admins';

/**
 * Whose last event has the default access control lists: what it leaves out is as it was before.
 */
const SETTINGS = '$settings';

const OF_RIGHT = { read: '$r', write: '$w', delete: '$d' } as const;
const OF_RIGHT_ON_METADATA = { read: '$mr', write: '$mw', delete: '$mw' } as const;

interface Settings {
  $userStreamAcl?: Acl;
  $systemStreamAcl?: Acl;
}

function settings(log: NodeLog): Settings {
  const read = log.readStream(SETTINGS, { from: 'end', direction: 'backwards', limit: 1 });
  const record = read.kind === 'found' ? read.records[0] : undefined;
  return record ? (JSON.parse(Buffer.from(record.data).toString()) as Settings) : {};
}

/**
 * Where the metadata of a stream say nothing: all who have a password, or for the server's own
 * streams none but admins.
 */
function byDefault(log: NodeLog, key: keyof Acl, stream: string): Names {
  const { $userStreamAcl = {}, $systemStreamAcl = {} } = settings(log);
  return stream.startsWith('$')
    ? ($systemStreamAcl[key] ?? ADMINS)
    : ($userStreamAcl[key] ?? EVERYONE);
}

/** Whom the access control list of a stream gives a right. */
function named(log: NodeLog, right: Right, stream: string): Names {
  const [about, key]: [string, keyof Acl] = isMetadataStream(stream)
    ? [stream.slice(2), OF_RIGHT_ON_METADATA[right]]
    : [stream, OF_RIGHT[right]];
  return log.metadataOf(about).acl[key] ?? byDefault(log, key, about);
}

/**
 * Users with passwords, and rights by access control lists in `$$<stream>`, of which `$all` has one
 * too, and in `$settings`.
 */
export function guardedAccess(log: NodeLog, users: Users = createUsers(log)): Access {
  function caller(authorization: string | undefined): Caller | undefined {
    if (authorization === undefined) return 'anonymous';
    const [, encoded = ''] = /^Basic (.*)$/i.exec(authorization) ?? [];
    const [, name = '', password = ''] =
      /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString()) ?? [];
    return users.verified(name, password);
  }

  function allows(who: Caller, right: Right, stream: string): boolean {
    if (who === 'anonymous') return false;
    if (isAdmin(who)) return true;
    const names = [named(log, right, stream)].flat();
    return names.some(
      (name) => name === EVERYONE || name === who.name || who.groups.includes(name),
    );
  }

  return { caller, allows, users };
}

/** The header that carries a call's credentials. */
export const authorizationOf = (metadata: grpc.Metadata): string | undefined =>
  metadata.get('authorization')[0]?.toString();
