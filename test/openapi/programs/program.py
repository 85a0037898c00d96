"""A client that openapi-python-client made, used as a program of somebody else would, without a cast."""

import json
import sys

from turnlog_client import AuthenticatedClient
from turnlog_client.api.agents import create_agent, get_agent, run_agent
from turnlog_client.api.sessions import get_session, list_session_events
from turnlog_client.models import (
    AgentNotFound,
    CreateAgentRequest,
    CreateAgentResponse200,
    DisclosedText,
    Failure,
    GetSessionResponse200,
    InvalidRequest,
    ListSessionEventsResponse200,
    OutputDelta,
    RunAgentResponse200,
    RunRequest,
    SessionTurnCompletedV1,
)

url, key = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=key, prefix="", auth_header_name="x-api-key")


def streamed(agent_id: str, request: RunRequest) -> tuple[str, str]:
    """The text and the result of a run, read from its stream."""
    text, event = "", ""
    headers = {"accept": "text/event-stream"}
    with client.get_httpx_client().stream(
        "POST", f"/v1/agents/{agent_id}/run", json=request.to_dict(), headers=headers
    ) as response:
        for line in response.iter_lines():
            field, _, value = line.partition(": ")
            if field == "event":
                event = value
            elif field == "data" and event == "output.delta":
                text += OutputDelta.from_dict(json.loads(value)).text
            elif field == "data" and event == "turn.completed":
                return text, RunAgentResponse200.from_dict(json.loads(value)).data.output
            elif field == "data" and event == "error":
                raise RuntimeError(Failure.from_dict(json.loads(value)).error)
    raise RuntimeError("The stream has no end.")


made = create_agent.sync(
    client=client,
    body=CreateAgentRequest(
        name="Sums", instruction="Be brief.", model="offline-echo", tool="calculator"
    ),
)
assert isinstance(made, CreateAgentResponse200), made
agent_id = made.data.agent_id

ran = run_agent.sync(agent_id, client=client, body=RunRequest(input_="What is 12*34?"))
assert isinstance(ran, RunAgentResponse200), ran
session_id = ran.data.session_id
text, result = streamed(agent_id, RunRequest(input_="Good morning", session_id=session_id))
assert text == result, text

transcript = get_session.sync(session_id, client=client)
assert isinstance(transcript, GetSessionResponse200), transcript
turn, streamed_turn = transcript.data.turns
assert turn.output == ran.data.output
assert turn.tool_calls[0].result == "408"
assert turn.started_at.tzinfo is not None, "an instant is a datetime"
assert streamed_turn.output == result

events = list_session_events.sync(session_id, client=client)
assert isinstance(events, ListSessionEventsResponse200), events
completed = events.data[-1]
assert isinstance(completed, SessionTurnCompletedV1), completed
assert isinstance(completed.data.output, DisclosedText), completed
assert completed.data.output.text == result

missing = get_agent.sync("nobody", client=client)
assert isinstance(missing, AgentNotFound), missing

refused = create_agent.sync(
    client=client,
    body=CreateAgentRequest(name=" ", instruction="Be brief.", model="offline-echo"),
)
assert isinstance(refused, InvalidRequest), refused
assert refused.details, refused

print(json.dumps([missing.status, missing.code, refused.code, refused.details["name"].path]))
