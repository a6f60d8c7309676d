"use strict";
// What the pages of studies share: short numbers, saving files, and the dialog with a run's TOML.

const $ = (id) => document.getElementById(id);
const html = (value) => String(value).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
const words = (name) => name.replace(/_/g, " ");
const distinct = (values) => [...new Set(values)];
const digits = (value, count = 3) => (value === null ? "" : Number(value.toPrecision(count)).toLocaleString("en", { maximumSignificantDigits: count }));
const times = (value) => (value === null ? "–" : `${digits(value)} ×`);

function saveFile(name, text, kind) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const quoted = (value) => (value === null || value === undefined ? "" : /[",\n]/.test(value) ? `"${String(value).replace(/"/g, '""')}"` : value);

// ---- the dialog with a run's TOML -------------------------------------------------------------------------------

function showRun(title, text, toml) {
  $("run-title").textContent = title;
  $("run-words").textContent = text;
  $("run-text").textContent = toml;
  $("run").showModal();
}
$("close").addEventListener("click", () => $("run").close());
$("save").addEventListener("click", () => saveFile("cell.toml", $("run-text").textContent, "text/plain"));
$("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText($("run-text").textContent);
    $("copy").textContent = "Copied";
  } catch {
    getSelection().selectAllChildren($("run-text")); // without leave to write, the reader copies what is marked
    $("copy").textContent = "Marked: copy it";
  }
  setTimeout(() => { $("copy").textContent = "Copy"; }, 2000);
});
