/** What structure.test.ts lets pass, and why. Remove an entry together with its cause. */
export interface Exception {
  because: string;
  items: readonly string[];
}

export const EXCEPTIONS = {
  fullFolders: [],
  namesTwice: [
    {
      because: 'the same function for SQLite and for PostgreSQL',
      items: [
        'isRowFailure',
        'createFollower',
        'createRowAccess',
        'rowStatements',
        'VERSION',
        'createWordIndex',
      ],
    },
  ],
  testsWithoutFile: [
    {
      because: 'runs published test vectors against several files of the folder',
      items: ['test/unit/shared/transparency/tlog/vectors.test.ts'],
    },
  ],
  smallFiles: [
    {
      because: 'one of several members of a kind: middleware, tool, command, option group, format',
      items: [
        'services/api/http/middleware/accessLog.ts',
        'services/api/http/middleware/closeWhenStopping.ts',
        'services/api/http/middleware/headers.ts',
        'services/api/http/middleware/requestId.ts',
        'shared/lib/config/client.ts',
        'shared/lib/config/storage.ts',
        'shared/lib/config/tools.ts',
        'shared/lib/config/transparency.ts',
        'shared/lib/config/webhooks.ts',
        'infra/tools/calculator.ts',
      ],
    },
  ],
  longFiles: [],
} satisfies Record<string, readonly Exception[]>;
