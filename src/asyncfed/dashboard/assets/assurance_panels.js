// What is guaranteed: the certificate's checks, and the privacy that was spent.

import { element, panel, replaceIfNew } from "./elements.js";
import { formatNumber } from "./format.js";

export function certificatePanel() {
  const section = panel("Certificate", "Whether what theory assumes holds in this run.");
  const body = element("div");
  section.append(body);
  section.hidden = true;
  return {
    section,
    show({ certificate }) {
      section.hidden = !certificate?.length;
      if (section.hidden) return;
      replaceIfNew(body, certificate, () => element("ul", { class: "checks" }, certificate.map((check) =>
        element("li", { "data-ok": check.ok === null ? "unknown" : check.ok },
          element("b", { text: check.ok === null ? "Not known" : check.ok ? "Holds" : "Broken" }),
            element("span", { text: check.name }),
          element("span", { class: "quiet", text: check.text })))));
    },
  };
}

export function privacyPanel() {
  const section = panel("Privacy spent");
  const body = element("dl", { class: "facts" });
  section.append(body);
  section.hidden = true;
  return {
    section,
    show({ privacy }) {
      section.hidden = !privacy;
      if (!section.hidden) replaceIfNew(body, privacy, () => factRows(privacy));
    },
  };
}

// A table of plain values, each under its name; tables in it are shown with the names joined.
export function factRows(values, prefix = "") {
  return Object.entries(values).flatMap(([name, value]) => {
    const label = prefix + name.replaceAll("_", " ");
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return factRows(value, `${label}, `);
    const text = typeof value === "number" ? formatNumber(value) : Array.isArray(value) ? value.join(", ")
      : String(value ?? "–");
    return [element("div", {}, element("dt", { text: label }), element("dd", { text }))];
  });
}
