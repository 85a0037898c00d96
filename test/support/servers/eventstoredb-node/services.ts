import grpc from '@grpc/grpc-js';
import gossipGrpc from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import gossipPb from '@eventstore/db-client/generated/gossip_pb.js';
import featuresGrpc from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import featuresPb from '@eventstore/db-client/generated/serverfeatures_pb.js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import { handleAppend } from './append.ts';
import { handleBatchAppend } from './batchAppend.ts';
import type { Member, NodeContext } from './node.ts';
import { handleRead } from './read.ts';
import { handleDelete, handleTombstone } from './remove.ts';

const { LEADER, PRELEADER, FOLLOWER, UNKNOWN } = gossipPb.MemberInfo.VNodeState;
const STATES = { leader: LEADER, pre_leader: PRELEADER, follower: FOLLOWER, unknown: UNKNOWN };

/** Lets a call that answers through a callback on to its handler once the node admits it. */
const admitCallback =
  <Call extends { metadata: grpc.Metadata }, Response>(
    node: NodeContext,
    handler: (call: Call, callback: grpc.sendUnaryData<Response>) => void,
  ) =>
  (call: Call, callback: grpc.sendUnaryData<Response>): void =>
    node.admit(call.metadata, (refusal) => (refusal ? callback(refusal) : handler(call, callback)));

/** The same for a call that answers with a stream, and asks for the leader itself. */
const admitStream =
  <
    Call extends
      grpc.ServerWritableStream<unknown, unknown> | grpc.ServerDuplexStream<unknown, unknown>,
  >(
    node: NodeContext,
    handler: (call: Call) => void,
  ) =>
  (call: Call): void =>
    node.admit(
      call.metadata,
      (refusal) => (refusal ? call.emit('error', refusal) : handler(call)),
      'anywhere',
    );

/** The methods of Streams and what they can do beside. */
const METHODS = {
  read: ['position', 'events'],
  append: [],
  delete: [],
  tombstone: [],
  batchappend: ['deadline_duration'],
};

function supportedMethods(reported: string): featuresPb.SupportedMethods {
  const [, serviceName = ''] = streamsGrpc.StreamsService.read.path.toLowerCase().split('/');
  const methods = Object.entries(METHODS).map(([name, features]) =>
    new featuresPb.SupportedMethod()
      .setServiceName(serviceName)
      .setMethodName(name)
      .setFeaturesList(features),
  );
  return new featuresPb.SupportedMethods()
    .setEventStoreServerVersion(reported)
    .setMethodsList(methods);
}

function memberInfo(member: Member): gossipPb.MemberInfo {
  return new gossipPb.MemberInfo()
    .setInstanceId(new sharedPb.UUID().setString(member.instanceId))
    .setTimeStamp(String(Date.now()))
    .setState(STATES[member.state])
    .setIsAlive(member.alive)
    .setHttpEndPoint(new gossipPb.EndPoint().setAddress(member.host).setPort(member.port));
}

/**
 * Registers what the node speaks: Streams, ServerFeatures and Gossip, on the definitions that the
 * client package ships.
 */
export function addServices(server: grpc.Server, node: NodeContext): void {
  server.addService(streamsGrpc.StreamsService, {
    read: admitStream(node, handleRead(node)),
    append: admitCallback(node, handleAppend(node)),
    batchAppend: admitStream(node, handleBatchAppend(node)),
    delete: admitCallback(node, handleDelete(node)),
    tombstone: admitCallback(node, handleTombstone(node)),
  });
  // These two answer on any member, and without credentials.
  server.addService(featuresGrpc.ServerFeaturesService, {
    getSupportedMethods(_call: unknown, callback: grpc.sendUnaryData<featuresPb.SupportedMethods>) {
      if (!node.faults.silent) callback(null, supportedMethods(node.version.reported));
    },
  });
  server.addService(gossipGrpc.GossipService, {
    read(_call: unknown, callback: grpc.sendUnaryData<gossipPb.ClusterInfo>) {
      if (!node.faults.silent)
        callback(null, new gossipPb.ClusterInfo().setMembersList(node.members().map(memberInfo)));
    },
  });
}
