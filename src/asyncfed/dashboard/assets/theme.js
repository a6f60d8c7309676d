// Light or dark: what the system says, unless somebody chose. The choice is kept where the browser allows it.

const KEY = "asyncfed-theme";
const NEXT = { system: "light", light: "dark", dark: "system" };
const NAMES = { system: "Theme: system", light: "Theme: light", dark: "Theme: dark" };
const listeners = new Set();

function storedTheme() {
  try {
    const value = localStorage.getItem(KEY);
    return value in NEXT ? value : "system";
  } catch {
    return "system"; // storage is switched off
  }
}

export function onThemeChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function applyTheme(theme, button) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  button.dataset.choice = theme;
  button.setAttribute("aria-label", `${NAMES[theme]}. Change`);
  button.title = `${NAMES[theme]}. Change`;
  for (const listener of listeners) listener();
}

export function startTheme(button) {
  let theme = storedTheme();
  applyTheme(theme, button);
  button.addEventListener("click", () => {
    theme = NEXT[theme];
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // it is then chosen for this page alone
    }
    applyTheme(theme, button);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => applyTheme(theme, button));
}
