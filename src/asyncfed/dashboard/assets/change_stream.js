// The stream of changes of some runs. A page that nobody sees has none: a browser opens six to one server, no more.

import { isSnapshot } from "./api.js";

export function followChanges(runs, { change, folder, alert, connected }) {
  if (isSnapshot) return () => {};
  let source = null;
  const close = () => {
    source?.close();
    source = null;
  };
  const open = () => {
    const query = runs.length ? `?runs=${runs.map(encodeURIComponent).join(",")}` : "";
    source = new EventSource(`/api/stream${query}`);
    const read = (listener) => (event) => listener?.(JSON.parse(event.data));
    source.addEventListener("change", read(change));
    source.addEventListener("folder", read(folder));
    source.addEventListener("alert", read(alert));
    source.addEventListener("open", () => connected(true));
    source.addEventListener("error", () => connected(false));
  };
  const lookAgain = () => {
    if (document.hidden) close();
    else if (source === null) open();
  };
  document.addEventListener("visibilitychange", lookAgain);
  lookAgain();
  return () => {
    document.removeEventListener("visibilitychange", lookAgain);
    close();
  };
}

// A stream begins with how each run is now. Of a run that is over this says what the page has read already: no news.
export function changeFilter(changed) {
  let drawn = null, early = null;
  const isNews = (message) => message.state === "running" || message.change !== drawn;
  return {
    told(message) {
      if (drawn === null) early = message;
      else if (isNews(message)) changed();
    },
    drawnAt(change) {
      drawn ??= change;
      if (early && isNews(early)) changed();
      early = null;
    },
  };
}
