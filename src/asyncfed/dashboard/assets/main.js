// Which page an address shows, and what all pages share.

import { runAddress } from "./addresses.js";
import { startAlerts } from "./alerts_panel.js";
import { getJson, isSnapshot, snapshotTime } from "./api.js";
import { openClientPage } from "./client_page.js";
import { openComparePage } from "./compare_page.js";
import { element, emptyState } from "./elements.js";
import { formatClock } from "./format.js";
import { openRunPage } from "./run_page.js";
import { openRunsPage } from "./runs_page.js";
import { startTheme } from "./theme.js";

const main = document.getElementById("main"), trail = document.getElementById("trail");
const attention = document.getElementById("attention");
const linkState = document.getElementById("link-state");
let closePage = () => {};

const shell = {
  setTrail(...steps) {
    trail.replaceChildren(...steps.map(([text, address]) =>
      address ? element("a", { href: address, text }) : element("span", { text, "aria-current": "page" })));
    const names = steps.map(([text]) => text).reverse();
    document.title = [...names, "AsyncFed"].join(" · ");
  },
  setAttention(text) {
    attention.hidden = text === null;
    attention.textContent = text ?? "";
  },
  connected(isConnected) {
    linkState.dataset.state = isConnected ? "live" : "lost";
    linkState.textContent = isConnected ? "Live" : "Reconnecting";
    linkState.title = isConnected ? "The page follows the runs."
      : "The server does not answer. Is `asyncfed dashboard` still running?";
  },
  fail(error) {
    const advice = error.status === 401 ? "Open the address that the terminal shows."
      : "Go back to the list of runs, or reload the page.";
    main.replaceChildren(emptyState(error.message, advice));
  },
  alert: () => {},
};

async function route() {
  closePage();
  closePage = () => {};
  main.replaceChildren();
  window.scrollTo(0, 0);
  const [page, id, , client] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  try {
    if (page === "run" && client !== undefined) closePage = openClientPage(main, shell, id, Number(client));
    else if (page === "run" && id) closePage = openRunPage(main, shell, id);
    else if (page === "compare") closePage = openComparePage(main, shell, (id ?? "").split(",").filter(Boolean));
    else closePage = openRunsPage(main, shell);
  } catch (error) {
    shell.fail(error);
  }
}

async function start() {
  startTheme(document.getElementById("theme-button"));
  if (isSnapshot) {
    linkState.dataset.state = "saved";
    linkState.textContent = `Saved ${formatClock(snapshotTime)}`;
  }
  const { site } = await getJson("/api/runs").catch(() => ({ site: null }));
  shell.site = site;
  document.body.dataset.view = site ? "site" : "operator";
  const home = site ? runAddress(site.run) : "#/";
  document.querySelector(".brand").href = home;
  if (site && !location.hash.startsWith("#/run/")) history.replaceState(null, "", home);
  if (!site) shell.alert = startAlerts(document.getElementById("alerts-button"), document.getElementById("alerts"));
  else document.getElementById("alerts-button").hidden = true;
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the part after # says which page is shown
    main.focus();
  });
  attention.addEventListener("click", () => window.scrollTo({ top: 0 }));
  window.addEventListener("hashchange", route);
  await route();
}

start();
