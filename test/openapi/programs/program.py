"""A client that openapi-python-client made, used as a program of somebody else would."""

import json
import sys

from turnlog_client import AuthenticatedClient
from turnlog_client.api.agents import create_agent, get_agent, run_agent
from turnlog_client.api.sessions import get_session, list_session_events
from turnlog_client.models import (
    AgentNotFound,
    CreateAgentRequest,
    CreateAgentRequestModel,
    CreateAgentResponse200,
    GetSessionResponse200,
    InvalidRequest,
    ListSessionEventsResponse200,
    RunAgentResponse200,
    RunRequest,
    SessionTurnCompletedV1,
)

url, key = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=key, prefix="", auth_header_name="x-api-key")

made = create_agent.sync(
    client=client,
    body=CreateAgentRequest(
        name="Sums",
        instruction="Be brief.",
        model=CreateAgentRequestModel.OFFLINE_ECHO,
        tool="calculator",
    ),
)
assert isinstance(made, CreateAgentResponse200), made
agent_id = made.data.agent_id

ran = run_agent.sync(agent_id, client=client, body=RunRequest(input_="What is 12*34?"))
assert isinstance(ran, RunAgentResponse200), ran
session_id = ran.data.session_id

transcript = get_session.sync(session_id, client=client)
assert isinstance(transcript, GetSessionResponse200), transcript
(turn,) = transcript.data.turns
assert turn.output == ran.data.output
assert turn.tool_calls[0].result == "408"
assert turn.started_at.tzinfo is not None, "an instant is a datetime"

events = list_session_events.sync(session_id, client=client)
assert isinstance(events, ListSessionEventsResponse200), events
completed = events.data[-1]
assert isinstance(completed, SessionTurnCompletedV1), completed
assert completed.data.output.text == turn.output

missing = get_agent.sync("nobody", client=client)
assert isinstance(missing, AgentNotFound), missing

refused = create_agent.sync(
    client=client,
    body=CreateAgentRequest(
        name=" ", instruction="Be brief.", model=CreateAgentRequestModel.OFFLINE_ECHO
    ),
)
assert isinstance(refused, InvalidRequest), refused
assert refused.details, refused

print(json.dumps([missing.status, missing.code, refused.code, refused.details.to_dict()["name"]["path"]]))
