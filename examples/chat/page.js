/** The element of an agent's `component`. `Chat` is the name of agents that name none. */
const elementOf = (component) => (component === 'Chat' ? 'turnlog-chat' : component);

async function requestToken() {
  const response = await fetch('/chat-token', { method: 'POST' });
  if (!response.ok) throw new Error(`The server of this page answered ${response.status}.`);
  return (await response.json()).data;
}

const main = document.querySelector('main');

function explain(text) {
  const paragraph = document.createElement('p');
  paragraph.setAttribute('role', 'alert');
  paragraph.textContent = text;
  main.append(paragraph);
}

async function openChat() {
  let first = await requestToken();
  const name = elementOf(first.component);
  if (!customElements.get(name)) {
    explain(`The agent names the component ${name}, which this page does not have.`);
    return;
  }
  const chat = document.createElement(name);
  chat.setAttribute('server', main.dataset.turnlog);
  chat.setAttribute('agent', first.agent_id);
  chat.setAttribute('heading', 'Ask us');
  // The first token is there already; later ones are requested when it has expired.
  chat.getToken = async () => {
    const token = first ?? (await requestToken());
    first = undefined;
    return token;
  };
  main.append(chat);
}

openChat().catch(() => explain('The chat could not be opened. Reload the page to try again.'));
