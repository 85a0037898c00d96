#!/usr/bin/env python3
"""Builds the model requests of a session again from its events, and compares their hashes with the
recorded ones:

    TURNLOG_URL=http://127.0.0.1:3000 TURNLOG_API_KEY=… python3 rebuild_requests.py <session> [--show]

docs/replay.md has the rule. Of a fork the calls of its own turns are built. The key needs the scopes
`sessions:read` and `agents:read`. `--show` also prints each request. Exits with 1 where a request is
not the one that was sent, with 2 where that can't be known."""
import hashlib, json, os, re, sys
from collections import defaultdict
from decimal import Decimal
from urllib.error import HTTPError
from urllib.parse import urljoin
from urllib.request import Request, urlopen

SUM_UP = (
    "You are given the beginning of a conversation between a user and an assistant. Sum it up for the"
    " assistant, who goes on with the conversation and sees your summary in its place. Keep what the"
    " user wants, facts, names, numbers, decisions and open questions. Do not answer the user, and do"
    " not add anything. Write at most 400 words, in the language of the conversation."
)
Number = type("Number", (str,), {})  # as it is written
plain = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def parsed(text):
    return json.loads(text, parse_int=Number, parse_float=Number)


def number(text):
    """A number as RFC 8785 writes it: the shortest that is the same IEEE 754 double, as ECMAScript."""
    value = (Decimal(repr(float(text))) + 0).normalize()
    power = value.adjusted()
    return f"{value:f}" if -7 < power < 21 else f"{value.scaleb(-power):f}e{power:+d}"


def canonical(value):
    """JSON text as RFC 8785 has it; members are sorted by the UTF-16 code units of their names."""
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda member: member[0].encode("utf-16-be"))
        return "{" + ",".join(plain(k) + ":" + canonical(v) for k, v in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    return number(value) if isinstance(value, Number) else plain(value)


def pages(path):
    """The entries of a list, page after page."""
    url = urljoin(os.environ.get("TURNLOG_URL", "http://127.0.0.1:3000"), path)
    while url:
        request = Request(url, headers={"x-api-key": os.environ["TURNLOG_API_KEY"]})
        with urlopen(request, timeout=60) as answer:
            yield from parsed(answer.read().decode())["data"]
            link = re.fullmatch('<(.+)>; rel="next"', answer.headers.get("link") or "")
        url = link and urljoin(url, link[1])


def opened(text):
    """A text of an event; one of before texts were protected stands there as it is."""
    if isinstance(text, dict) and text.get("erased"):
        raise ValueError("a text was erased")
    return text["text"] if isinstance(text, dict) else text


def tool_call(call):
    """A call as it stands in a request, with the provider's own fields."""
    extra = parsed(opened(call["extra"])) if "extra" in call else {}
    function = {"name": opened(call["tool"]), "arguments": opened(call["arguments"])}
    function = {**extra.get("function", {}), **function}
    return {**extra, "id": opened(call["call_id"]), "type": "function", "function": function}


def turn_messages(turn, rounds, answered):
    messages = [{"role": "user", "content": opened(turn["input"])}]
    made = {int(call["round"]) for call in turn["tools"]}
    for one in sorted(number for number in made if number <= rounds):
        calls = [call for call in turn["tools"] if int(call["round"]) == one]
        content = opened(calls[0]["content"]) if "content" in calls[0] else None
        message = {"role": "assistant", "content": content, "tool_calls": list(map(tool_call, calls))}
        if "reasoning" in calls[0]:
            message["reasoning_content"] = opened(calls[0]["reasoning"])
        messages.append(message)
        for call in calls:
            name, result = opened(call["call_id"]), opened(call["result"])
            messages.append({"role": "tool", "tool_call_id": name, "content": result})
    if answered:
        messages.append({"role": "assistant", "content": opened(turn["output"])})
    return messages


def response_format(recorded):
    if recorded["type"] != "json_schema":
        return {"type": recorded["type"]}
    schema = dict(recorded["json_schema"], name=opened(recorded["json_schema"]["name"]))
    return {
        "type": "json_schema",
        "json_schema": dict(schema, schema=parsed(opened(schema["schema"]))),
    }


def is_object(text):
    try:
        return isinstance(json.loads(text, parse_int=Number, parse_constant=int), dict)
    except ValueError:
        return False


def corrected(messages):
    """Tool calls with a valid name and a JSON object as arguments."""
    for message in messages:
        for call in message.get("tool_calls", []):
            function = call["function"]
            function["name"] = re.sub("[^a-zA-Z0-9_-]", "_", function["name"])[:64]
            if not is_object(function["arguments"]):
                function["arguments"] = "{}"


def formed(form, body):
    """The body in the form that the server accepts."""
    messages, without = body["messages"], form.get("without", [])
    if form.get("corrected_calls"):
        corrected(messages)
    if "max_tokens_field" in form:
        body["max_tokens"] = body.pop("max_completion_tokens")
    if form.get("system_role") == "user":
        messages[1]["content"] = messages.pop(0)["content"] + "\n\n" + messages[0]["content"]
    elif "system_role" in form:
        messages[0]["role"] = form["system_role"]
    if "response_format" in without:
        del body["response_format"]
    for message in messages:
        if "reasoning_content" in without:
            message.pop("reasoning_content", None)
        for call in message.get("tool_calls", []) if "tool_call_fields" in without else []:
            function = {name: call["function"][name] for name in ("name", "arguments")}
            kept = {"id": call["id"], "type": "function", "function": function}
            call.clear()
            call.update(kept)
    return body


def sent(call, body):
    """The body as it was sent, perhaps to another model than the turn's."""
    if other := call.get("fallback"):
        body = {k: v for k, v in body.items() if k != "max_completion_tokens"}
        body["model"] = other["upstream_model"]
        if "max_completion_tokens" in other:
            body["max_completion_tokens"] = other["max_completion_tokens"]
    return formed(call.get("form", {}), body)


def answer_request(turn, round_, history, instruction, summary):
    said = f"\n\nWhat was said before, in short:\n{summary}" if summary is not None else ""
    messages = [{"role": "system", "content": instruction + said}]
    for earlier in history:
        messages += turn_messages(earlier, 1000, True)
    messages += turn_messages(turn, round_ - 1, False)
    body = dict(turn["settings"], messages=messages)
    if "response_format" in body:
        body["response_format"] = response_format(body["response_format"])
    return body


def turn_text(turn):
    lines = ["User: " + opened(turn["input"])]
    for call in turn["tools"]:
        tool, said = opened(call["tool"]), opened(call["arguments"])
        lines.append(f"Tool {tool}({said}): {opened(call['result'])}")
    return "\n".join([*lines, "Assistant: " + opened(turn["output"])])


def compaction_request(data, turns, summary):
    said = [f"Before: {summary}"] if summary is not None else []
    said += map(turn_text, turns)
    messages = [
        {"role": "system", "content": SUM_UP},
        {"role": "user", "content": "\n\n".join(said)},
    ]
    dropped = ("tools", "response_format")
    kept = {name: value for name, value in data["settings"].items() if name not in dropped}
    return dict(kept, messages=messages)


def between(turns, first, last):
    """The turns of those numbers that were answered, oldest first."""
    return [one for number, one in turns.items() if first <= number <= last and "output" in one]


def events_of(session, last=float("inf")):
    """The events of a session up to a revision, after those that it shares as a fork; with its id."""
    for event in pages(f"/v1/sessions/{session}/events?limit=1000"):
        if int(event["revision"]) > last:
            return
        if origin := event["data"].get("forked_from"):
            yield from events_of(origin["session_id"], int(origin["revision"]))
        yield session, event


def instructions_of(started):
    """By the agent's revision; the session's own stands in place of each of them."""
    if "instruction" in started:
        return defaultdict(lambda: opened(started["instruction"]))
    revisions = pages(f"/v1/agents/{started['agent_id']}/revisions?limit=1000")
    return {int(one["revision"]): one["config"]["instruction"] for one in revisions}


def requests_of(session):
    """Each model call of a session that was answered: where, what was recorded of it, its request."""
    turns, summaries, instructions = {}, {}, {}
    for recorder, event in events_of(session):
        kind, data, own = event["type"], event["data"], recorder == session
        if kind == "session.started.v1" and own:
            instructions = instructions_of(data)
        named = data.get("summary_session_id", recorder), data.get("summary_revision")
        before = summaries.get(named)
        if kind == "session.compacted.v1":
            if own:
                first, last = int(data["from_turn"]), int(data["up_to_turn"])
                body = compaction_request(data, between(turns, first, last), before)
                where = f"compaction of turns {first} to {last}"
                yield where, data["call"], sent(data["call"], body)
            summaries[recorder, event["revision"]] = opened(data["summary"])
        if kind == "session.turn_started.v1":
            shown = before if "compacted" in data.get("context", {}) else None
            turns[int(data["turn"])] = dict(data, tools=[], summary=shown)
        if kind == "session.tool_called.v1":
            turns[int(data["turn"])]["tools"].append(data)
        if "calls" in data:  # The turn has ended, completed or failed.
            turn = turns[int(data["turn"])]
            history = between(turns, int(turn["context_from_turn"]), int(data["turn"]) - 1)
            for round_, call in enumerate(data["calls"] if own else [], 1):
                instruction = instructions[int(turn["agent_revision"])]
                body = answer_request(turn, round_, history, instruction, turn["summary"])
                yield f"turn {data['turn']}, round {round_}", call, sent(call, body)
            if kind == "session.turn_completed.v1":
                turn["output"] = data["output"]


def main(session, show):
    checked = misfits = 0
    for where, call, body in requests_of(session):
        text = canonical(body)
        matches = hashlib.sha256(text.encode()).hexdigest() == opened(call["request_sha256"])
        print(f"{where}: {'as it was sent' if matches else 'NOT what was sent'}")
        if show:
            print(text)
        checked, misfits = checked + 1, misfits + (not matches)
    print(f"{checked} requests, {misfits} of them are not what was sent")
    return 1 if misfits else 0


if __name__ == "__main__":
    asked = [one for one in sys.argv[1:] if one != "--show"]
    if len(asked) != 1 or "TURNLOG_API_KEY" not in os.environ:
        sys.exit(print(__doc__, file=sys.stderr) or 2)
    try:
        sys.exit(main(asked[0], "--show" in sys.argv))
    except HTTPError as refused:
        print(f"{refused.url}: {refused.code} {refused.read(1000).decode()}", file=sys.stderr)
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        print(f"It can't be known: {error!r}", file=sys.stderr)
    sys.exit(2)
