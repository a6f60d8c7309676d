// Panels that are kept up to date: each asks anew when its run changed, not faster than it is answered, and after the
// first time only while its host can be seen. Without a host it is kept up to date always: warnings are.

const LEAST_PAUSE = 400; // milliseconds between two questions of one panel

export function keepFresh(host, load, failed) {
  let isDirty = true, isBusy = false, isSeen = true, isClosed = false, timer = null, answered = 0;

  async function refresh() {
    timer = null;
    if (isBusy || isClosed || !isDirty || !isSeen) return;
    isDirty = false;
    isBusy = true;
    try {
      await load();
      if (!isClosed) failed(null);
    } catch (error) {
      if (!isClosed && error.name !== "AbortError") failed(error);
    }
    isBusy = false;
    answered = performance.now();
    if (isDirty) plan();
  }

  function plan() {
    timer ??= setTimeout(refresh, Math.max(0, answered + LEAST_PAUSE - performance.now()));
  }

  const watcher = new IntersectionObserver((entries) => {
    isSeen = entries.at(-1).isIntersecting;
    if (isSeen && isDirty) plan();
  }, { rootMargin: "300px" });
  const first = refresh().then(() => isClosed || !host || watcher.observe(host));

  return {
    first, // settled when it was drawn, or could not be, for the first time
    changed() {
      isDirty = true;
      plan();
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
      watcher.disconnect();
    },
  };
}
