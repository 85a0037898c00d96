/**
 * Production code broken on purpose, one place at a time: what the tests must notice. `run.ts`
 * breaks and counts. An entry stays when its code moves: give it the new file and text, and leave
 * what is broken as it is.
 */
export interface Mutation {
  /** What is broken, as a sentence. */
  name: string;
  file: string;
  /** Stands exactly once in the file. */
  from: string;
  to: string;
  /** Test files that may notice, by path or by the beginning of one, the quickest first. */
  likely: readonly string[];
}

export const mutations: readonly Mutation[] = [
  {
    name: 'SQLite takes an append at a revision that the stream has passed',
    file: 'infra/sqlite/eventStore/writer.ts',
    from: 'if (head !== first - 1)',
    to: 'if (head < first - 1)',
    likely: ['test/contracts/sqliteEventStore.test.ts'],
  },
  {
    name: 'a fact of a run that was written although its answer was lost is not found again',
    file: 'shared/runs/recordTurn.ts',
    from: 'return own?.recorded.position;',
    to: 'return undefined;',
    likely: ['test/unit/shared/runs/recordTurn.test.ts'],
  },
  {
    name: 'a hash chain fits whatever the content of its events is',
    file: 'shared/eventlog/hashChain.ts',
    from: 'return eventHash(prev_hash, { ...event, data, metadata }) === hash',
    to: 'return eventHash(prev_hash, { ...event, data, metadata }).length === hash.length',
    likely: [
      'test/unit/shared/eventlog/reading/chainChecker.test.ts',
      'test/slow/cli/audit.test.ts',
    ],
  },
  {
    name: 'a row takes the event that it has seen last once more',
    file: 'shared/projections/fold.ts',
    from: 'row !== undefined && row.revision >= revision;',
    to: 'row !== undefined && row.revision > revision;',
    likely: ['test/unit/shared/projections/', 'test/contracts/sqliteReadModels.test.ts'],
  },
  {
    name: 'the checkpoint of the SQLite read models is moved in a transaction after that of the rows',
    file: 'infra/sqlite/readModels/projectionStore.ts',
    from: 'setCheckpoint.run(position,',
    to: "database.exec('COMMIT; BEGIN IMMEDIATE');\n    setCheckpoint.run(position,",
    likely: [
      'test/integration/projections/projectorSqliteFile.test.ts',
      'test/contracts/sqliteReadModels.test.ts',
    ],
  },
  {
    name: 'a checkpoint fits a log that holds another event at its position',
    file: 'shared/eventlog/identity/logIdentity.ts',
    from: 'if (!identity || event?.id !== event_id) {',
    to: "if (!identity || event?.id === 'never') {",
    likely: ['test/contracts/sqliteEventStore.test.ts'],
  },
  {
    name: 'a subscription to EventStoreDB resumes without a look at the log',
    file: 'infra/eventstoredb/subscribe/subscribe.ts',
    from: 'await abortable(trail.verify(), ended);',
    to: 'await abortable(Promise.resolve(), ended);',
    likely: [
      'test/servers/eventstoredb/eventStoreContract.test.ts',
      'test/slow/process/changedLog.test.ts',
    ],
  },
  {
    name: 'writing goes on to a log that is not followed',
    file: 'shared/eventlog/appendsWhileFollowed.ts',
    from: 'if (reason !== undefined)',
    to: "if (reason === 'never')",
    likely: ['test/slow/process/changedLog.test.ts'],
  },
  {
    name: 'a batch goes on with a stream that it has just parked',
    file: 'shared/projections/fold.ts',
    from: 'skipped.add(stream);',
    to: '',
    likely: ['test/unit/shared/projections/', 'test/contracts/sqliteReadModels.test.ts'],
  },
  {
    name: 'a subscription to EventStoreDB says that it has caught up while a backlog is left',
    file: 'infra/eventstoredb/subscribe/subscribe.ts',
    from: 'isUpToDate &&\n    stream.isEmpty() &&',
    to: 'stream.isEmpty() &&',
    likely: [
      'test/unit/infra/eventstoredb/subscribe/subscribe.batches.test.ts',
      'test/servers/eventstoredb/eventStoreContract.test.ts',
    ],
  },
  {
    name: 'events of a session are shown to every account',
    file: 'shared/sessions/queries.ts',
    from: 'if (row?.account_id !== accountId)',
    to: "if (row === undefined || accountId === '')",
    likely: ['test/integration/http/isolation.test.ts'],
  },
  {
    name: 'the transcript of a session is shown to every account',
    file: 'shared/sessions/sqlQueries.ts',
    from: "'session_id = ? AND account_id = ?'",
    to: "'session_id = ? AND account_id > substr(?, 1, 1)'",
    likely: ['test/integration/http/isolation.test.ts', 'test/contracts/sqliteReadModels.test.ts'],
  },
  {
    name: 'a body may be a byte larger than the limit',
    file: 'shared/requests/limits.ts',
    from: 'bodyBytes: 2 * MIB,',
    to: 'bodyBytes: 2 * MIB + 1,',
    likely: ['test/slow/http/rubbishBodies.test.ts'],
  },
  {
    name: 'a session that has lost only its first event passes as whole',
    file: 'shared/eventlog/reading/wholeStream.ts',
    from: 'expected >= 0 && !isFull(page)',
    to: 'expected > 0 && !isFull(page)',
    likely: [
      'test/unit/shared/eventlog/reading/wholeStream.test.ts',
      'test/slow/store/damagedStreams.test.ts',
    ],
  },
  {
    name: 'a run waits for a turn of another instance without a limit',
    file: 'shared/runs/startTurn.ts',
    from: 'if (performance.now() + pauseMs > bounds.until) throw sessionBusyError();',
    to: 'if (performance.now() + pauseMs > bounds.until) signal.throwIfAborted();',
    likely: ['test/unit/shared/runs/startTurn.test.ts'],
  },
  {
    name: 'a server leaves the turns open that another name of its data folder began',
    file: 'services/compose/embedded/instance.ts',
    from: "'folder' in log || owner === id,",
    to: 'owner === id,',
    likely: ['test/slow/process/shutdown.test.ts'],
  },
  {
    name: 'the turns of the dead are swept once and never again',
    file: 'services/process/upkeep/periodicTask.ts',
    from: 'working = undefined;',
    to: '',
    likely: ['test/servers/replicas/replicas.test.ts'],
  },
  {
    name: 'a run that is cut off by the shutdown before its first answer is recorded as failed',
    file: 'shared/runs/finishTurn.ts',
    from: 'const end = inFlight.isInterrupted()\n',
    to: 'const end = inFlight.isInterrupted() && calls.length > 0\n',
    likely: ['test/slow/process/shutdown.test.ts'],
  },
  {
    name: 'the relay commits its checkpoint in a transaction after that of the messages',
    file: 'infra/kafka/producerSession.ts',
    from: '{ key: keys.checkpoint, value: JSON.stringify(reached) },\n        ]);\n      });',
    to: ']);\n      });\n      await producer.commit(noted([{ key: keys.checkpoint, value: JSON.stringify(reached) }]));',
    likely: ['test/servers/kafka/relay.test.ts', 'test/faults/relay.test.ts'],
  },
  {
    name: 'a relay that takes over in vain does so again and again',
    file: 'services/followers/relay/retries.ts',
    from: 'const isSteppingBack = tookOver && !madeProgress && !isRetriedAtOnce(failure);',
    to: 'const isSteppingBack = tookOver && madeProgress && !isRetriedAtOnce(failure);',
    likely: [
      'test/unit/services/followers/relay/run.takeOvers.test.ts',
      'test/faults/relayFaults.test.ts',
    ],
  },
  {
    name: 'a projector that another has replaced goes on writing to PostgreSQL',
    file: 'infra/postgres/readModels/generationWriter.ts',
    from: 'if (rows[0]?.epoch !== epoch)',
    to: 'if (rows[0] === undefined || epoch < 0)',
    likely: ['test/servers/postgres/projector.test.ts'],
  },
  {
    name: 'read models are dropped that an instance in the list reads',
    file: 'infra/postgres/readModels/generations.ts',
    from: 'coalesce(read_models, version) = version',
    to: 'false',
    likely: ['test/servers/postgres/versions.test.ts'],
  },
  {
    name: 'a write does not wait for the read models of another release',
    file: 'infra/postgres/readModels/follower.ts',
    from: 'others.untilShown(position, timeoutMs),',
    to: '',
    likely: ['test/servers/postgres/versions.test.ts'],
  },
  {
    name: 'a database is taken for one that a pooler does not take apart',
    file: 'infra/postgres/connectivityCheck.ts',
    from: 'if (shared) return true;',
    to: '',
    likely: ['test/servers/postgres/selfTest.test.ts'],
  },
  {
    name: 'a process that serves ends without a drain',
    file: 'services/process/start.ts',
    from: 'if (api && config.DRAIN_MS > 0) {',
    to: 'if (api && config.DRAIN_MS < 0) {',
    likely: ['test/slow/process/shutdown.test.ts'],
  },
  {
    name: 'a rebuild in PostgreSQL is published behind the generation that it replaces',
    file: 'infra/postgres/readModels/rebuildStore.ts',
    from: 'if (held !== undefined && (built === undefined || built < held)) await reach(held);',
    to: 'if (held !== undefined && built === undefined) await reach(held);',
    likely: ['test/servers/postgres/rebuild.test.ts'],
  },
  {
    name: 'a subscription to EventStoreDB begins after a position beyond the end of the log',
    file: 'infra/eventstoredb/subscribe/subscribe.ts',
    from: 'if (position !== undefined) await verifier.requireWithinLog(position);',
    to: '',
    likely: ['test/servers/eventstoredb/eventStoreContract.test.ts'],
  },
  {
    name: 'a node of EventStoreDB that has frozen is not said to be silent',
    file: 'infra/eventstoredb/connection/heartbeat.ts',
    from: 'listener.onSilent();',
    to: '',
    likely: ['test/servers/eventstoredb/trouble.test.ts'],
  },
  {
    name: 'an operator command that was interrupted ends as if it had done its work',
    file: 'services/cli/failure.ts',
    from: "return error.code === 'interrupted' ? EXIT.interrupted : EXIT.usage;",
    to: 'return EXIT.done;',
    likely: ['test/integration/cli/interrupted.test.ts'],
  },
  {
    name: 'an agent is found by whoever names it',
    file: 'shared/agents/queries.ts',
    from: 'agent.account_id !== accountId',
    to: "accountId === ''",
    likely: [
      'test/integration/http/isolation.test.ts',
      'test/slow/http/isolation.property.test.ts',
    ],
  },
  {
    name: 'a 400 lists every problem that a body has',
    file: 'services/api/http/errors/validation.ts',
    from: '.slice(0, LIMITS.http.details), words',
    to: '.slice(LIMITS.http.details - 20), words',
    likely: [
      'test/slow/http/rubbishBodies.test.ts',
      'test/unit/services/api/http/errors/validation.test.ts',
    ],
  },
  {
    name: 'a model may call tools for a hundred rounds',
    file: 'shared/runs/model/modelLoop.ts',
    from: 'round <= LIMITS.run.rounds',
    to: 'round <= 100',
    likely: ['test/integration/runs/runs.test.ts'],
  },
  {
    name: 'a page has as many entries as are asked for',
    file: 'services/api/openapi/commonSchemas.ts',
    from: 'maximum: LIMITS.http.pageEntries, ...limit',
    to: 'maximum: 1_000_000, ...limit',
    likely: ['test/integration/http/paging.test.ts'],
  },
];
