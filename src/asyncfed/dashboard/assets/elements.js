// Elements of the page. Texts are always set as text: names of clients and errors come from strangers.

const SVG = "http://www.w3.org/2000/svg";

export function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function drawing(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") made.textContent = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

export function select(label, choices, chosen, change) {
  const options = choices.map(([value, text]) => element("option", { value, text, selected: value === chosen }));
  const box = element("select", { onchange: () => change(box.value) }, options);
  return element("label", { class: "field" }, element("span", { class: "field-name", text: label }), box);
}

// A row of buttons of which one is pressed.
export function choice(label, choices, chosen, change) {
  const buttons = choices.map(([value, text]) =>
    element("button", {
      type: "button", text, "data-value": value, "aria-pressed": String(value === chosen),
      onclick: () => {
        for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.value === value));
        change(value);
      },
    }));
  return element("div", { class: "choice", role: "group", "aria-label": label }, buttons);
}

export function pill(state) {
  return element("span", { class: "pill", "data-state": state, text: state });
}

export function panel(title, explanation, ...children) {
  const head = element("div", { class: "panel-head" },
    element("h2", { text: title }), explanation ? element("p", { class: "quiet", text: explanation }) : null);
  return element("section", { class: "panel", "aria-label": title }, head, ...children);
}

export function emptyState(title, text) {
  return element("div", { class: "empty" }, element("p", { class: "empty-title", text: title }),
    text ? element("p", { class: "quiet", text }) : null);
}

// Replace what an element holds, unless it would be the same: nothing flickers and no selection of text is lost.
export function replaceIfNew(host, key, make) {
  const text = JSON.stringify(key);
  if (host.shownKey === text) return;
  host.shownKey = text;
  host.replaceChildren(...[make()].flat());
}

export function clientLabel({ client, name }) {
  return name === String(client) ? `Client ${client}` : name;
}
