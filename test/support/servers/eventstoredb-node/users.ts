import { createHash, randomBytes } from 'node:crypto';
import type { NodeLog } from './log.ts';

export interface User {
  name: string;
  groups: readonly string[];
}

export interface NewUser {
  loginName: string;
  fullName?: string;
  password: string;
  groups?: readonly string[];
}

interface StoredUser {
  loginName: string;
  fullName: string;
  salt: string;
  hash: string;
  groups: readonly string[];
}

export type Users = ReturnType<typeof createUsers>;

const hashOf = (salt: string, password: string): string =>
  createHash('sha256')
    .update(salt + password)
    .digest('base64');

/** The users of a node, in streams of its log, as a server keeps them. */
export function createUsers(log: NodeLog) {
  function stored(name: string): StoredUser | undefined {
    const read = log.readStream(`$user-${name}`, { from: 'end', direction: 'backwards', limit: 1 });
    const record = read.kind === 'found' ? read.records[0] : undefined;
    return record && (JSON.parse(Buffer.from(record.data).toString()) as StoredUser);
  }

  function store(type: string, user: Omit<StoredUser, 'salt' | 'hash'>, password: string): void {
    const salt = randomBytes(16).toString('base64');
    const data = Buffer.from(JSON.stringify({ ...user, salt, hash: hashOf(salt, password) }));
    const event = {
      id: crypto.randomUUID(),
      type,
      contentType: 'application/json',
      data,
      metadata: new Uint8Array(),
    };
    log.append(`$user-${user.loginName}`, 'any', [event]);
  }

  return {
    /** The user of this name, if the password is theirs. */
    verified(name: string, password: string): User | undefined {
      const user = stored(name);
      return user && user.hash === hashOf(user.salt, password)
        ? { name, groups: user.groups }
        : undefined;
    },
    /** Answers whether there was none of that name. */
    create({ loginName, fullName = loginName, password, groups = [] }: NewUser): boolean {
      if (stored(loginName)) return false;
      store('$UserCreated', { loginName, fullName, groups }, password);
      return true;
    },
    /** Answers whether there is such a user. */
    resetPassword(name: string, password: string): boolean {
      const user = stored(name);
      if (user)
        store(
          '$UserUpdated',
          { loginName: name, fullName: user.fullName, groups: user.groups },
          password,
        );
      return user !== undefined;
    },
  };
}
