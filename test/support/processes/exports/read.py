"""Reads exports with the programs that they are made for, and prints what those understood.

In the folder that is named: openai-chat.jsonl, otel.jsonl, inspect.jsonl and atif.jsonl, and in logs the
lines of inspect.jsonl as docs/exports.md makes files of them. What a reader refuses ends it.
"""

import base64
import io
import json
import pathlib
import sys

from google.protobuf.json_format import Parse
from harbor.models.trajectories import Trajectory
from harbor.utils.trajectory_validator import TrajectoryValidator
from inspect_ai.log import list_eval_logs, read_eval_log
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from pydantic import ConfigDict, TypeAdapter
from typing_extensions import NotRequired, TypedDict

folder = pathlib.Path(sys.argv[1])


def lines(name):
    return (folder / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")[:-1]


class Conversation(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    messages: list[ChatCompletionMessageParam]
    tools: NotRequired[list[ChatCompletionToolParam]]
    parallel_tool_calls: NotRequired[bool]


def conversation(line):
    """Every call of a tool is answered right behind it, and the assistant has the last word."""
    value = TypeAdapter(Conversation).validate_json(line)
    waiting = []
    for message in value["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0), message
            continue
        assert not waiting, message
        waiting = [call["id"] for call in message.get("tool_calls", [])]
    assert message["role"] == "assistant" and not waiting, message
    return [[message["role"], message["content"]] for message in json.loads(line)["messages"]]


def in_base64(span):
    """Protobuf's own JSON has bytes in base64; OTLP's has ids in hex."""
    for name in ("traceId", "spanId", "parentSpanId"):
        if name in span:
            span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    return span


def value_of(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [value_of(one) for one in value.array_value.values]
    return getattr(value, kind)


def trace(line):
    request = json.loads(line)
    for resource in request["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            scope["spans"] = [in_base64(span) for span in scope["spans"]]
    message = Parse(json.dumps(request), ExportTraceServiceRequest())
    spans = [
        span
        for resource in message.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    return [
        {
            "trace": span.trace_id.hex(),
            "id": span.span_id.hex(),
            "parent": span.parent_span_id.hex(),
            "name": span.name,
            "kind": span.kind,
            "start": span.start_time_unix_nano,
            "end": span.end_time_unix_nano,
            "status": span.status.code,
            "attributes": {one.key: value_of(one.value) for one in span.attributes},
        }
        for span in spans
    ]


def evaluation(line):
    log = read_eval_log(io.BytesIO(line.encode()), format="json")
    head = read_eval_log(io.BytesIO(line.encode()), header_only=True, format="json")
    assert head.eval == log.eval and head.stats == log.stats and head.samples is None
    [sample] = log.samples
    return {
        "id": log.eval.eval_id,
        "status": log.status,
        "model": log.eval.model,
        "usage": {name: one.total_tokens for name, one in log.stats.model_usage.items()},
        "input": sample.input,
        "completion": sample.output.completion,
        "stop_reason": sample.output.stop_reason if sample.output.choices else None,
        "error": sample.error and sample.error.message,
        "messages": [
            {
                "role": one.role,
                "text": one.text,
                "metadata": one.metadata,
                "error": one.error.message if one.role == "tool" and one.error else None,
                "calls": [
                    {"arguments": call.arguments, "parse_error": call.parse_error}
                    for call in (one.tool_calls or [] if one.role == "assistant" else [])
                ],
            }
            for one in sample.messages
        ],
    }


def evaluations():
    """A log a line, each of which Inspect also lists as a file."""
    read = [evaluation(line) for line in lines("inspect")]
    listed = [read_eval_log(one).eval.eval_id for one in list_eval_logs(str(folder / "logs"))]
    assert sorted(listed) == sorted(one["id"] for one in read), listed
    return read


def trajectory(line):
    validator = TrajectoryValidator()
    assert validator.validate(json.loads(line)), validator.get_errors()
    return Trajectory.model_validate_json(line).to_json_dict()


print(
    json.dumps(
        {
            "openai-chat": [conversation(line) for line in lines("openai-chat")],
            "otel": [trace(line) for line in lines("otel")],
            "inspect": evaluations(),
            "atif": [trajectory(line) for line in lines("atif")],
        }
    )
)
