import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import grpc from '@grpc/grpc-js';

/** What came of an append. `unknown`: it may have happened, or may happen yet. */
type RawAnswer =
  | { kind: 'success'; revision: number }
  | { kind: 'conflict' }
  | { kind: 'unknown'; reason: string };

export interface RawRecord {
  position: string;
  stream: string;
  revision: number;
  id: string;
}

interface RawAppend {
  stream: string;
  /** The revision that the stream must have; -1 when it must not exist. */
  expected: number;
  id: string;
}

const { Options } = streamsPb.ReadReq;

function metadata(requiresLeader: boolean): grpc.Metadata {
  const headers = new grpc.Metadata();
  headers.set('requires-leader', String(requiresLeader));
  return headers;
}

const identifier = (stream: string) =>
  new sharedPb.StreamIdentifier().setStreamName(new Uint8Array(Buffer.from(stream)));

function toRecord(event: streamsPb.ReadResp.ReadEvent.RecordedEvent): RawRecord {
  return {
    position: event.getCommitPosition(),
    stream: Buffer.from(event.getStreamIdentifier()?.getStreamName_asU8() ?? []).toString(),
    revision: Number(event.getStreamRevision()),
    id: event.getId()?.getString() ?? '',
  };
}

function toRequest({ stream, expected, id }: RawAppend): streamsPb.BatchAppendReq {
  const options = new streamsPb.BatchAppendReq.Options().setStreamIdentifier(identifier(stream));
  if (expected < 0) options.setNoStream(new sharedPb.Empty());
  else options.setStreamPosition(String(expected));
  const uuid = new sharedPb.UUID().setString(id);
  const event = new streamsPb.BatchAppendReq.ProposedMessage()
    .setId(uuid)
    .setData(Buffer.from('{}'));
  event.getMetadataMap().set('type', 'happened').set('content-type', 'application/json');
  const correlationId = new sharedPb.UUID().setString(crypto.randomUUID());
  const request = new streamsPb.BatchAppendReq()
    .setCorrelationId(correlationId)
    .setOptions(options);
  return request.setProposedMessagesList([event]).setIsFinal(true);
}

/** One node, called without a client library that decides, repeats or hides anything. */
export function openRawNode(port: number) {
  const client = new streamsGrpc.StreamsClient(
    `127.0.0.1:${port}`,
    grpc.credentials.createInsecure(),
    {
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 500,
    },
  );

  /** Appends one event by a call of its own. */
  function append(
    request: RawAppend,
    { requiresLeader = true, deadlineMs = 3000 } = {},
  ): Promise<RawAnswer> {
    const call = client.batchAppend(metadata(requiresLeader), {
      deadline: Date.now() + deadlineMs,
    });
    return new Promise((resolve) => {
      call.on('data', (response: streamsPb.BatchAppendResp) => {
        const error = response.getError();
        const type = error?.getDetails()?.getTypeName() ?? '';
        if (!error)
          resolve({
            kind: 'success',
            revision: Number(response.getSuccess()?.getCurrentRevision()),
          });
        else if (type.endsWith('.WrongExpectedVersion')) resolve({ kind: 'conflict' });
        else resolve({ kind: 'unknown', reason: `${type} ${error.getMessage()}` });
        call.end();
      });
      call.on('error', ({ code, details }: grpc.ServiceError) =>
        resolve({ kind: 'unknown', reason: `${code} ${details}` }),
      );
      call.write(toRequest(request));
    });
  }

  function readAll(requiresLeader: boolean): Promise<RawRecord[]> {
    const all = new Options.AllOptions().setStart(new sharedPb.Empty());
    return read(new Options().setAll(all).setCount(String(2n ** 63n - 1n)), requiresLeader);
  }

  function read(options: streamsPb.ReadReq.Options, requiresLeader: boolean): Promise<RawRecord[]> {
    const records: RawRecord[] = [];
    const call = client.read(request(options), metadata(requiresLeader), {
      deadline: Date.now() + 20_000,
    });
    return new Promise((resolve, reject) => {
      call.on('data', (response: streamsPb.ReadResp) => {
        const event = response.getEvent()?.getEvent();
        if (event) records.push(toRecord(event));
      });
      call.on('error', reject);
      call.on('end', () => resolve(records));
    });
  }

  /**
   * Follows `$all` after a position, or from the start. Resolves with why it ended; never when it
   * stays open and silent.
   */
  function subscribe(
    after: string | undefined,
    seen: (record: RawRecord) => void,
    requiresLeader = true,
  ) {
    const all = new Options.AllOptions();
    if (after === undefined) all.setStart(new sharedPb.Empty());
    else all.setPosition(new Options.Position().setCommitPosition(after).setPreparePosition(after));
    const options = new Options().setAll(all).setSubscription(new Options.SubscriptionOptions());
    const call = client.read(request(options), metadata(requiresLeader));
    const ended = new Promise<string>((resolve) => {
      call.on('data', (response: streamsPb.ReadResp) => {
        const event = response.getEvent()?.getEvent();
        if (event) seen(toRecord(event));
      });
      call.on('error', (error: grpc.ServiceError) => resolve(`${error.code} ${error.details}`));
      call.on('end', () => resolve('end'));
    });
    return { ended, cancel: () => call.cancel() };
  }

  const request = (options: streamsPb.ReadReq.Options): streamsPb.ReadReq =>
    new streamsPb.ReadReq().setOptions(
      options
        .setNoFilter(new sharedPb.Empty())
        .setUuidOption(new Options.UUIDOption().setString(new sharedPb.Empty())),
    );

  return { append, readAll, subscribe, close: () => client.close() };
}

export type RawNode = ReturnType<typeof openRawNode>;
