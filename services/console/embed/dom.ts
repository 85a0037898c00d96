type Child = Node | string;

/** Creates an element with attributes and children. Text is never parsed as HTML. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string>> = {},
  ...children: Child[]
): HTMLElementTagNameMap[Name] {
  const created = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes))
    created.setAttribute(attribute, value);
  created.append(...children);
  return created;
}

/** Text that takes no part in the layout, for screen readers. */
export const hiddenText = (text: string): HTMLElement => element('span', { class: 'hidden' }, text);
