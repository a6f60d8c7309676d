// The experiment as TOML, to be read or copied.

import { element, panel } from "./elements.js";

export function settingsPanel() {
  const section = panel("The experiment", "As TOML: save it, change it, and run it with `asyncfed run FILE`.");
  section.classList.add("wide");
  const text = element("pre", { class: "toml", tabindex: "0" });
  const copy = element("button", { type: "button", text: "Copy", onclick: copyText });
  const box = element("details", {}, element("summary", { text: "Show all settings" }), text);
  section.querySelector(".panel-head").append(element("div", { class: "tools" }, copy));
  section.append(box);

  async function copyText() {
    try {
      await navigator.clipboard.writeText(text.textContent);
      copy.textContent = "Copied";
    } catch {
      box.open = true; // no access to the clipboard: the text is marked, to be copied by hand
      getSelection().selectAllChildren(text);
      copy.textContent = "Marked; press Ctrl+C";
    }
    setTimeout(() => { copy.textContent = "Copy"; }, 3000);
  }

  return {
    section,
    show({ toml }) {
      section.hidden = !toml;
      if (toml && text.textContent !== toml) text.textContent = toml;
    },
  };
}
